package stream

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func benchmarkTask() model.Task {
	return model.Task{Job: ids.ID{1}, Seq: 4711, Customer: "customer-0001", Scraper: ids.ID{2}, Revision: 3,
		URL: "https://shop-17.example/products/000004711.html", Tiers: 1, Budget: 10, Attempt: 1, Number: 99_123}
}

func benchmarkPage() model.Page {
	return model.Page{Job: ids.ID{1}, Unit: model.Unit{Seq: 4711}, Fetch: ids.ID{3}, Outcome: model.Delivered, Status: 200,
		URL: "https://shop-17.example/products/000004711.html", PriceRow: "tier:plain", Quantity: 1,
		Tries: []model.Try{{Status: 200, Millis: 31}}, Bytes: 20_480, Millis: 35, At: 1_800_000_000_000_000, Last: true,
		Rows: [][]byte{[]byte(`{"title":"Lamp 4711","price":"12.90","currency":"EUR","stock":true,"image":"/i/4711.jpg"}`)}}
}

func benchmarkReceipt() model.Receipt {
	return model.Receipt{Job: ids.ID{1}, Unit: model.Unit{Seq: 4711}, Outcome: model.Delivered, PriceRow: "tier:plain",
		Quantity: 1, Items: 1, Last: true}
}

func BenchmarkEncode(b *testing.B) {
	task, page, receipt := benchmarkTask(), benchmarkPage(), benchmarkReceipt()
	b.Run("task", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			EncodeTask(task)
		}
	})
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			EncodePage(page)
		}
	})
	b.Run("receipt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			EncodeReceipt(receipt)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	task, page, receipt := EncodeTask(benchmarkTask()), EncodePage(benchmarkPage()), EncodeReceipt(benchmarkReceipt())
	b.Run("task", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := DecodeTasks(task); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := DecodePages(page); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("receipt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := DecodeReceipts(receipt); err != nil {
				b.Fatal(err)
			}
		}
	})
}
