//go:build !race

package stream

import (
	"testing"

	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards the cost of the three records of each page.
func TestAllocations(t *testing.T) {
	task, page, receipt := exampleTask(), examplePage(), exampleReceipt()
	taskRecord, pageRecord, receiptRecord := EncodeTask(task), EncodePage(page),
		EncodeReceipt(receipt)
	for _, c := range []struct {
		name     string
		recorded float64
		call     func() error
	}{
		{"encode task", 2, func() error { EncodeTask(task); return nil }},
		{"encode page", 2, func() error { EncodePage(page); return nil }},
		{"encode receipt", 2, func() error { EncodeReceipt(receipt); return nil }},
		{"decode task", 3, func() error { _, _, err := DecodeTasks(taskRecord); return err }},
		{"decode page", 8, func() error { _, _, err := DecodePages(pageRecord); return err }},
		{"decode receipt", 2, func() error {
			_, _,
				err := DecodeReceipts(receiptRecord)
			return err
		}},
	} {
		allocs.Check(t, c.name, c.recorded, func() {
			if err := c.call(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
