package state

import "fmt"

// Succeed makes a restored state fit to follow another one in its cluster: it takes over from it what is about machines,
// not about customers. That is the cluster's id and services, the nodes, and who fetches which shard, because a fetcher at work holds a
// lease by the state of today; the number of the newest dispatch and the index, which never count back; and the time. It
// fails when the states have different numbers of shards.
func (s *Store) Succeed(before *Store) error {
	before.mu.RLock()
	old, index, now, dispatched := before.View(), before.index, before.now, before.dispatched
	before.mu.RUnlock()
	mine := s.View()
	if mine.Cluster() == nil || old.Cluster() == nil || mine.Cluster().Shards != old.Cluster().Shards {
		return fmt.Errorf("state: the numbers of shards differ")
	}
	s.mu.Lock()
	s.dispatched = max(s.dispatched, dispatched)
	index = max(s.index, index)
	s.mu.Unlock()
	return s.Update(index, now, func(tx *Tx) error {
		cluster := *mine.Cluster()
		cluster.ID, cluster.Log, cluster.Rows = old.Cluster().ID, old.Cluster().Log, old.Cluster().Rows
		tx.PutCluster(&cluster)
		for _, node := range mine.Nodes() {
			tx.RemoveNode(node)
		}
		for _, node := range old.Nodes() {
			tx.PutNode(node)
		}
		for _, shard := range old.Shards() {
			tx.PutShard(shard)
		}
		return nil
	})
}
