package subsets

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// maxPrefix is what API servers leave of the prefix of a generated name.
const maxPrefix = 58

// Name returns the name of the workload of a subset, in the form of generated names. It is the same each time, so that
// a creation whose answer is lost is not repeated under another name.
func Name(owner *v1beta1.UnitedDeployment, subset string) string {
	prefix := owner.Name + "-" + subset + "-"
	if len(validation.NameIsDNSSubdomain(prefix, true)) > 0 {
		prefix = owner.Name + "-"
	}
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/0", owner.UID, subset))
	n, suffix := binary.BigEndian.Uint64(sum[:8]), make([]byte, 5)
	for i := range suffix {
		suffix[i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return prefix[:min(len(prefix), maxPrefix)] + string(suffix)
}
