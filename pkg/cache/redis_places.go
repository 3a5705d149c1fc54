package cache

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// places are the places that this process has taken. A place is a member of its room's sorted set
// in Redis; its score is the end of its lease by Redis's clock. Any process removes expired places.
// Each process renews its own places. So the places of a dead process become free, and a wiped set
// fills again.
type places struct {
	process string // unique for each start of each process

	// mu is held during requests to Redis, so that no renewal brings back a place that is given
	// up. These requests are short and rare: streams seldom open.
	mu    sync.Mutex
	last  uint64
	rooms map[string]map[string]struct{} // places by room
}

// occupy renews this process's places in a room. It takes one more if fewer than most are taken.
//
//	KEYS: the room. ARGV: most, the lease in ms, the new place ("" for none), the places to
//	renew…
//
// A place whose lease ends later than a new one would was leased before Redis's clock was put back.
// It is removed.
var occupy = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now + lease, '+inf')
for i = 4, #ARGV do
  redis.call('ZADD', KEYS[1], now + lease, ARGV[i])
end
local taken = 0
if ARGV[3] ~= '' and redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('ZADD', KEYS[1], now + lease, ARGV[3])
  taken = 1
end
redis.call('PEXPIRE', KEYS[1], lease)
return taken
`)

// Enter implements Limiter. A wiped Redis has the places again once their processes have renewed
// them, within a third of a lease. The places of this process count at all times.
func (r *Redis) Enter(ctx context.Context, room string, most int) (leave func()) {
	p, room := &r.places, bounded(room)
	p.mu.Lock()
	defer p.mu.Unlock()
	own := len(p.rooms[room])
	if own >= most {
		return nil
	}
	p.last++
	place := p.process + " " + strconv.FormatUint(p.last, 10)
	free := false
	asked := r.ask(ctx, func(ctx context.Context) error {
		var err error
		free, err = r.occupy(ctx, room, most, place).Bool()
		return err
	})
	if !asked {
		r.decided.Add(1)
		free = own < r.share(most)
	}
	if !free {
		return nil
	}
	if own == 0 {
		p.rooms[room] = map[string]struct{}{}
	}
	p.rooms[room][place] = struct{}{}
	return sync.OnceFunc(func() { r.leave(room, place) })
}

// occupy runs the script for a room. The lock is held.
func (r *Redis) occupy(ctx context.Context, room string, most int, place string) *redis.Cmd {
	arguments := []any{most, r.config.Lease.Milliseconds(), place}
	for held := range r.places.rooms[room] {
		arguments = append(arguments, held)
	}
	return occupy.Run(ctx, r.client, []string{r.key("room", room)}, arguments...)
}

// leave gives a place back. If Redis does not answer, the place ends with its lease.
func (r *Redis) leave(room, place string) {
	p := &r.places
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rooms[room], place)
	if len(p.rooms[room]) == 0 {
		delete(p.rooms, room)
	}
	r.ask(context.Background(), func(ctx context.Context) error {
		return r.client.ZRem(ctx, r.key("room", room), place).Err()
	})
}

// renew renews the places room by room. In between, places can be taken and given back.
func (r *Redis) renew(ctx context.Context) {
	p := &r.places
	p.mu.Lock()
	rooms := make([]string, 0, len(p.rooms))
	for room := range p.rooms {
		rooms = append(rooms, room)
	}
	p.mu.Unlock()
	slices.Sort(rooms)
	for _, room := range rooms {
		p.mu.Lock()
		if len(p.rooms[room]) > 0 {
			r.ask(ctx, func(ctx context.Context) error { return r.occupy(ctx, room, 0, "").Err() })
		}
		p.mu.Unlock()
	}
}
