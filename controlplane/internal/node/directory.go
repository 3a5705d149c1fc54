package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// ownerFile names the node that owns a directory.
const ownerFile = "node"

// ownDirectory ties a directory to the first node that uses it. Another node would get that node's
// votes and log.
func ownDirectory(dir, node, cluster string) error {
	path := filepath.Join(dir, ownerFile)
	mine := fmt.Sprintf("%s\n%s\n", node, cluster)
	owner, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(path+".new", []byte(mine), 0o600); err != nil {
			return fmt.Errorf("controlplane: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("controlplane: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("controlplane: %w", err)
	case string(owner) != mine:
		return fmt.Errorf("controlplane: %s is that of another node (name, cluster: %q), "+
			"and this is %q", dir, owner, mine)
	}
	return nil
}

// belonging says which cluster a directory belongs to. It is decided once, before Raft writes to
// the directory, and kept in a file. So a node never belongs to two clusters, whichever nodes it
// meets later.
type belonging struct {
	cluster ids.ID // zero: not decided
	founder bool   // this node founded the cluster, or was about to
}

const belongingFile = "cluster"

func readBelonging(dir string) (belonging, error) {
	data, err := os.ReadFile(filepath.Join(dir, belongingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return belonging{}, nil
	}
	if err != nil {
		return belonging{}, fmt.Errorf("controlplane: %w", err)
	}
	text, founder := strings.CutSuffix(strings.TrimSpace(string(data)), "\nfounder")
	id, err := ids.Parse(text)
	if err != nil {
		return belonging{}, fmt.Errorf("controlplane: %s: %w", filepath.Join(dir, belongingFile),
			err)
	}
	return belonging{cluster: id, founder: founder}, nil
}

// write returns when the belonging is on disk.
func (b belonging) write(dir string) error {
	text := b.cluster.String() + "\n"
	if b.founder {
		text += "founder\n"
	}
	if err := writeDurably(dir, belongingFile, text); err != nil {
		return fmt.Errorf("controlplane: %w", err)
	}
	return nil
}

func writeDurably(dir, name, text string) error {
	path := filepath.Join(dir, name)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
