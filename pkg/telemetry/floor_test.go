package telemetry_test

import (
	"testing"

	"shoal.dev/shoal/pkg/telemetry"
)

func TestDiskIsShortBelowItsFloor(t *testing.T) {
	const floor = 8000
	free, known := uint64(floor), true
	disk := &telemetry.Disk{Dir: "here", Floor: telemetry.NewFloor(floor),
		Free: func(dir string) (uint64, bool) { return free, known && dir == "here" }}
	for _, step := range []struct {
		free  uint64
		known bool
		short bool
	}{
		{floor, true, false}, {floor - 1, true, true}, {floor, true, true},
		{0, false, false}, // unknown
		{floor + floor/8 - 1, true, true}, {floor + floor/8, true, false}, {floor, true, false},
		{0, true, true},
	} {
		free, known = step.free, step.known
		if got := disk.Short(); got != step.short {
			t.Errorf("%d bytes free, known %t: short is %t", step.free, step.known, got)
		}
	}
	free, known = 0, true
	if disk.Floor = telemetry.NewFloor(0); disk.Short() {
		t.Error("a floor of nothing is reached")
	}
	if disk.Floor = nil; disk.Short() {
		t.Error("there is no floor, and it is reached")
	}
	if (*telemetry.Disk)(nil).Short() {
		t.Error("no disk is short")
	}
}

func TestDiskAsksTheSystem(t *testing.T) {
	disk := &telemetry.Disk{Dir: t.TempDir()}
	want, knows := telemetry.FreeSpace(disk.Dir)
	if free, known := disk.Left(); known != knows || knows && free == 0 && want > 0 {
		t.Errorf("%d bytes are left (known %t), the system says %d (%t)", free, known, want, knows)
	}
}
