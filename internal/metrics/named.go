package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxNamed is how many pairs of an object and a user a metric names.
const maxNamed = 1000

// Named counts by the names of an object and of a user. A client that creates objects and users does not make it grow
// without end. A nil Named counts nothing.
type Named struct {
	vec *prometheus.CounterVec

	mu   sync.Mutex
	seen map[[2]string]bool
}

// NewNamed returns a registered counter; nil without a registerer. The labels of the object and of the user are given.
func NewNamed(registerer prometheus.Registerer, o prometheus.CounterOpts, object, user string) (*Named, error) {
	if registerer == nil {
		return nil, nil //nolint:nilnil // Inc accepts nil
	}
	vec, err := Register(registerer, prometheus.NewCounterVec(o, []string{object, user}))
	return &Named{vec: vec, seen: map[[2]string]bool{}}, err
}

// Inc counts once.
func (n *Named) Inc(object, user string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	key := [2]string{object, user}
	if !n.seen[key] && len(n.seen) >= maxNamed {
		key = [2]string{other, other}
	} else {
		n.seen[key] = true
	}
	n.mu.Unlock()
	n.vec.WithLabelValues(key[0], key[1]).Inc()
}
