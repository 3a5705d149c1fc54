package wake_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/wake"
)

// Whoever adds to a queue raises the signal; whoever empties it waits for that.
func ExampleSignal() {
	added, queue := wake.NewSignal(), make(chan string, 2)
	queue <- "first"
	added.Raise()
	queue <- "second"
	added.Raise()
	<-added
	for len(queue) > 0 {
		fmt.Println(<-queue)
	}
	// Output:
	// first
	// second
}

// A notice given before anybody waits is kept, and one is enough for all that came before.
func TestNoticesAreKeptOnce(t *testing.T) {
	s := wake.NewSignal()
	for range 3 {
		s.Raise()
	}
	<-s
	select {
	case <-s:
		t.Error("an old notice came again")
	default:
	}
	s.Raise()
	<-s
}
