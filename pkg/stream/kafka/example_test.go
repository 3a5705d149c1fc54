package kafka_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/stream/kafka"
)

// Open finds invalid settings without asking a broker.
func ExampleOpen() {
	_, err := kafka.Open(context.Background(),
		kafka.Config{Brokers: []string{"kafka.example:9092"}})
	fmt.Println(err)
	// Output:
	// kafka: Partitions is 0, want 1 to 65535
}
