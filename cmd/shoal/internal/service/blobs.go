package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/telemetry"
)

// BackupFlags configure the leader's automatic backups.
type BackupFlags struct {
	Every time.Duration `name:"backup-every" group:"operation" help:"Time between two backups of the state, which the leader writes to --blobs; 0: no backups." default:"24h"`
	Keep  int           `name:"backup-keep" group:"operation" help:"Number of backups to keep. Older ones are removed." default:"7"`
}

func (b *BackupFlags) check() error {
	switch {
	case b.Every < 0:
		return errors.New("--backup-every: want a time, or 0 for no backups")
	case b.Every > 0 && b.Every < time.Second:
		return errors.New("--backup-every: no less than a second")
	case b.Every > 0 && (b.Keep < 1 || b.Keep > 1000):
		return errors.New("--backup-keep: 1 to 1000")
	}
	return nil
}

// backups are the settings of the leader's automatic backups. In the data directory itself, a copy
// of the row store would be lost together with it.
func (n *node) backups() controlplane.Backups {
	config := &n.config
	backups := controlplane.Backups{Every: config.Backups.Every, Keep: config.Backups.Keep,
		Rows: config.Services.Blobs != ""}
	if dir := config.Services.directory(); dir != "" {
		backups.Rows = !isWithin(dir, config.Data)
		backups.Disk = &telemetry.Disk{Dir: dir, Free: n.free, Floor: n.floor()}
	}
	return backups
}

// isWithin reports whether a path is a folder or in it.
func isWithin(path, folder string) bool {
	path, first := filepath.Abs(path)
	folder, second := filepath.Abs(folder)
	rest, third := filepath.Rel(folder, path)
	return errors.Join(first, second, third) == nil && filepath.IsLocal(rest)
}

// Prefixes of --blobs.
const (
	inDirectory = "dir:"
	inS3        = "s3://"
)

// directory is the directory that --blobs names, "" if it names none.
func (c *Connections) directory() string {
	dir, named := strings.CutPrefix(c.Blobs, inDirectory)
	if !named {
		return ""
	}
	return dir
}

// s3 returns how to reach the bucket of --blobs.
func (c *Connections) s3() (config blobstore.S3, err error) {
	switch {
	case c.Blobs == "", c.directory() != "":
		return config, nil
	case !strings.HasPrefix(c.Blobs, inS3):
		return config, errors.New("--blobs: want dir:PATH or s3://BUCKET")
	}
	if config, err = parseBucket(c.Blobs); err != nil {
		return config, err
	}
	config.Key = c.BlobsUser
	if config.Secret, err = secret("--blobs-password", c.BlobsPassword,
		c.BlobsPasswordFile); err != nil {
		return config, err
	}
	if config.RootCAs, err = authorities("--blobs-ca-file", c.BlobsCAFile); err != nil {
		return config, err
	}
	if err := config.Check(); err != nil {
		return config, fmt.Errorf("--blobs: %w", err)
	}
	return config, nil
}

// parseBucket reads s3://BUCKET?endpoint=URL&region=NAME. Its errors do not contain the URL, since
// it may hold a password.
func parseBucket(text string) (config blobstore.S3, err error) {
	address, err := url.Parse(text)
	if err != nil || address.User != nil || strings.Trim(address.Path, "/") != "" {
		return config, errors.New("--blobs: want s3://BUCKET?endpoint=URL&region=NAME")
	}
	for name := range address.Query() {
		if name != "endpoint" && name != "region" {
			return config, errors.New("--blobs: want no more than endpoint and region in the URL")
		}
	}
	return blobstore.S3{Bucket: address.Host, Endpoint: address.Query().Get("endpoint"),
		Region: address.Query().Get("region")}, nil
}

// openBlobs opens the blob store that the settings name. Without one, a standalone process uses its
// data directory, and a cluster node has no blob store.
func (n *node) openBlobs(ctx context.Context) error {
	if n.services.blobs != nil {
		return nil
	}
	store, err := n.config.openBlobs(ctx)
	if err != nil {
		return fmt.Errorf("--blobs: %w", err)
	}
	if store != nil {
		n.services.blobs = store
		n.closeLater(store.Close)
	}
	return nil
}

func (c *Config) openBlobs(ctx context.Context) (*blobstore.Store, error) {
	if dir := c.Services.directory(); dir != "" {
		return blobstore.OpenDirectory(dir)
	}
	if c.Services.Blobs != "" {
		config, err := c.Services.s3()
		if err != nil {
			return nil, err
		}
		return blobstore.OpenS3(ctx, config)
	}
	if c.Cluster.alone() {
		return blobstore.OpenDirectory(filepath.Join(c.Data, "blobs"))
	}
	return nil, nil
}
