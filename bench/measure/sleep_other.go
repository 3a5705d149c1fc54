//go:build !linux

package measure

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
