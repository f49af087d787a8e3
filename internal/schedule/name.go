package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// maxName is the longest name of a child: names of Jobs are values of labels.
const maxName = 63

// Name returns the name of the child for a tick: the name of the owner, and the tick in seconds since 1970. The same
// tick always gives the same name, so that a create that is repeated meets the child that exists. A name that would be
// too long has a hash of the owner instead of its end.
func Name(owner string, tick time.Time) string {
	suffix := "-" + strconv.FormatInt(tick.Unix(), 10)
	if len(owner)+len(suffix) <= maxName {
		return owner + suffix
	}
	const letters = 8
	sum := sha256.Sum256([]byte(owner))
	hash := "-" + hex.EncodeToString(sum[:])[:letters]
	kept := maxName - len(suffix) - len(hash)
	return strings.TrimRight(owner[:kept], "-.") + hash + suffix
}
