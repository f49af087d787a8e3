//go:build !unix

package growth

import "time"

// used returns the time of the day.
func used() time.Duration { return time.Duration(time.Now().UnixNano()) }
