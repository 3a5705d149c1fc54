package kafka

import "slices"

// TopicNames are the names of the topics at the brokers.
func (l *Log) TopicNames() []string { return slices.Clone(l.cluster.names) }
