package membership

import (
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

// Info is what a node gossips about itself.
type Info struct {
	Roles    []string `cbor:"1,keyasint,omitempty"`
	Address  string   `cbor:"2,keyasint,omitempty"` // HOST:PORT of Raft and of calls between nodes
	Version  string   `cbor:"3,keyasint,omitempty"`
	Capacity uint32   `cbor:"4,keyasint,omitempty"`
	Boot     ids.ID   `cbor:"5,keyasint,omitempty"` // this start of the process
	// Cluster is the id of the cluster whose log the node has or waits for; zero: none yet.
	Cluster   ids.ID `cbor:"6,keyasint,omitempty"`
	Bootstrap bool   `cbor:"7,keyasint,omitempty"` // it may found a cluster
	Founding  bool   `cbor:"8,keyasint,omitempty"` // it is about to found one
	Leaving   bool   `cbor:"9,keyasint,omitempty"` // it asks to be removed before it stops
	// Empty: it has no log, and ignores Raft until the leader admits it.
	Empty bool `cbor:"10,keyasint,omitempty"`
}

// infoVersion is the first byte of the encoding. Members with another version are left out, so a
// new version must be able to read the previous one.
const infoVersion = 1

// encodeInfo fails if the result exceeds the 512 bytes that gossip carries.
func encodeInfo(info Info) ([]byte, error) {
	body, err := codec.New().Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("membership: encode what this node says: %w", err)
	}
	data := append([]byte{infoVersion}, body...)
	if len(data) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("membership: what this node says of itself has %d bytes, "+
			"more than %d: "+
			"its address, version or list of roles is too long", len(data), memberlist.MetaMaxSize)
	}
	return data, nil
}

// decodeInfo decodes what encodeInfo made. It ignores fields that it does not know.
func decodeInfo(data []byte) (Info, error) {
	var info Info
	switch {
	case len(data) == 0:
		return info, errors.New("membership: the node says nothing of itself")
	case len(data) > memberlist.MetaMaxSize:
		return info, fmt.Errorf("membership: what the node says has %d bytes", len(data))
	case data[0] != infoVersion:
		return info, fmt.Errorf("membership: encoding %d is not known here (only %d)", data[0],
			infoVersion)
	}
	if err := codec.New().Unmarshal(data[1:], &info); err != nil {
		return Info{}, fmt.Errorf("membership: decode what the node says: %w", err)
	}
	return info, nil
}
