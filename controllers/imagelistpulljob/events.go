package imagelistpulljob

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/imagepull"
)

// Reasons of events. The first two are the reference's.
const (
	reasonCreated      = "Successful create ImagePullJob"
	reasonDeleted      = "Successful delete ImagePullJob"
	reasonFailedCreate = "FailedCreate"
	reasonInvalidSpec  = "InvalidSpec"
)

// tell records an event of the list. It comes after the write that it is about.
func (a *act) tell(eventType, reason, text string, args ...any) {
	if a.options.Recorder != nil {
		a.options.Recorder.Eventf(a.list, eventType, reason, text, args...)
	}
}

// misfits are the images that are passed over, and why.
func (a *act) misfits() string {
	var all []string
	for _, n := range a.plan.Notes {
		if n.Code == imagepull.NoteBadImage {
			all = append(all, n.Text)
		}
	}
	return strings.Join(all, "; ")
}

// complain tells what is wrong with the spec; once, as long as it is the same. Empty is nothing.
func (a *act) complain(text string) {
	if a.told.isNew(a.key(), text) && text != "" {
		a.tell(corev1.EventTypeWarning, reasonInvalidSpec, "%s", text)
	}
}

// told is what was last told of lists. It may be lost at any time: then it is told again.
type told struct {
	mu   sync.Mutex
	last map[types.NamespacedName]string
}

func (t *told) isNew(key types.NamespacedName, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[key] == text {
		return false
	}
	if t.last == nil {
		t.last = map[types.NamespacedName]string{}
	}
	t.last[key] = text
	return true
}

func (t *told) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, key)
}
