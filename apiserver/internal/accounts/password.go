package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"shoal.dev/shoal/pkg/fault"
)

// The cost of a password hash: the second choice of RFC 9106, with one lane, as a server has other
// work. It is stored in each hash, so it may be changed later.
const (
	usualKiB   = 64 << 10
	hashPasses = 3
	hashLanes  = 1
	saltBytes  = 16
	hashBytes  = 32
)

// Bounds of a password, in characters. The upper one keeps requests small.
const (
	minPassword = 12
	maxPassword = 256
)

// maxWaiting is how many hashes may wait for their turn in each queue.
const maxWaiting = 64

// hasher makes few hashes at a time: each takes 64 MiB, and a core for a tenth of a second. Those
// of people known to the service are served first, so no flood of strangers keeps them waiting.
type hasher struct {
	kib uint32

	mu     sync.Mutex
	places int // that are free
	queues [2][]chan struct{}
}

// The queues of a hasher, in the order in which they are served.
const (
	ofKnown     = iota // whoever has a known device, a session or a link
	ofStrangers        // guesses from anywhere
)

func newHasher(kib int) *hasher {
	return &hasher{kib: uint32(cmp.Or(kib, usualKiB)), places: max(1, runtime.GOMAXPROCS(0)/2)}
}

var errBusy = fault.New(fault.Unavailable, "too many are signing in; try again in a few seconds")

// enter waits for a place. If the queue is full it fails, so a flood takes no more memory.
func (h *hasher) enter(ctx context.Context, queue int) error {
	h.mu.Lock()
	if h.places > 0 { // then nobody waits
		h.places--
		h.mu.Unlock()
		return nil
	}
	if len(h.queues[queue]) == maxWaiting {
		h.mu.Unlock()
		return errBusy
	}
	turn := make(chan struct{})
	h.queues[queue] = append(h.queues[queue], turn)
	h.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := slices.Index(h.queues[queue], turn); at >= 0 {
		h.queues[queue] = slices.Delete(h.queues[queue], at, at+1)
	} else {
		h.pass() // its turn came meanwhile
	}
	return errBusy
}

// leave gives up a place.
func (h *hasher) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pass()
}

// pass hands a place to who waits longest in the first queue, or frees it.
func (h *hasher) pass() {
	for n, queue := range h.queues {
		if len(queue) > 0 {
			close(queue[0])
			h.queues[n] = slices.Delete(queue, 0, 1)
			return
		}
	}
	h.places++
}

// make hashes a password with a new salt, in the form of the argon2 reference: $argon2id$…
func (h *hasher) make(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx, ofKnown); err != nil {
		return "", err
	}
	defer h.leave()
	salt := random(saltBytes)
	return h.write(salt, sumOf(password, salt, hashPasses, h.kib, hashLanes, hashBytes)), nil
}

// decoy is a hash that no password matches. It costs nothing to make, and takes as long as any
// other to check.
func (h *hasher) decoy() string { return h.write(random(saltBytes), random(hashBytes)) }

func (h *hasher) write(salt, sum []byte) string {
	text := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.kib, hashPasses,
		hashLanes, text.EncodeToString(salt), text.EncodeToString(sum))
}

func random(size int) []byte {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}

// matches says whether a hash is that of a password.
func (h *hasher) matches(ctx context.Context, queue int, hash, password string) (bool, error) {
	var version, kib, passes uint32
	var lanes uint8
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, fmt.Errorf("accounts: a hash of another kind")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &kib, &passes,
		&lanes); err != nil || version != argon2.Version || passes == 0 || lanes == 0 {
		return false, fmt.Errorf("accounts: a hash of another kind: %w", err)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("accounts: a hash's salt: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) == 0 {
		return false, fmt.Errorf("accounts: a hash's sum: %w", err)
	}
	if err := h.enter(ctx, queue); err != nil {
		return false, err
	}
	defer h.leave()
	got := sumOf(password, salt, passes, kib, lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

// sumOf is the sum of a password. A garbage collection that its large allocation triggers still
// sees that memory live. The heap could then grow to twice as much before the next collection. So
// if the memory is most of the heap, sumOf collects it.
func sumOf(password string, salt []byte, passes, kib uint32, lanes uint8, size uint32) []byte {
	sum := argon2.IDKey([]byte(password), salt, passes, kib, lanes, size)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Uint64() < 2*uint64(kib)<<10 {
		runtime.GC()
	}
	return sum
}

// checkPassword refuses passwords that are easily guessed. Its error names the field.
func checkPassword(field, email, password string) error {
	name, _, _ := strings.Cut(email, "@")
	switch {
	case utf8.RuneCountInString(password) < minPassword ||
		utf8.RuneCountInString(password) > maxPassword:
		return fault.Invalid(fault.InvalidRequest, field, "must have %d to %d characters",
			minPassword, maxPassword)
	case strings.EqualFold(password, email), len(name) >= minPassword/2 &&
		strings.Contains(strings.ToLower(password), strings.ToLower(name)):
		return fault.Invalid(fault.InvalidRequest, field, "must not be the e-mail address, "+
			"nor have its name in it")
	case strings.Count(password, password[:1]) == len(password):
		return fault.Invalid(fault.InvalidRequest, field, "must not repeat one character")
	}
	return nil
}
