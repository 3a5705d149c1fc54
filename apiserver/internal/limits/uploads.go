package limits

import (
	"cmp"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/upload"
)

// UploadBytes is the greatest size of a customer's file.
func UploadBytes(v *client.View, customer string, format upload.Format) int64 {
	most, own := format.MaxBytes(), int64(0)
	if c := v.Customer(customer); c != nil {
		if own = c.UploadBytes; format == upload.XLSX {
			own = c.SheetBytes
		}
	}
	return min(most, cmp.Or(own, most))
}

// PartedBytes is the greatest size of a customer's file that comes in parts. Its format is unknown
// until it is complete.
func PartedBytes(v *client.View, customer string) (most int64) {
	for _, format := range upload.Format("").Values() {
		most = max(most, UploadBytes(v, customer, upload.Format(format)))
	}
	return most
}

// UploadTime is how long the upload of a file may take.
func UploadTime(v *client.View) time.Duration {
	if set := v.Settings().Uploads.Seconds; set > 0 {
		return time.Duration(set) * time.Second
	}
	return upload.MaxTime
}
