package imagepull

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

// images is a container runtime.
type images struct {
	mu      sync.Mutex
	up      bool
	changed chan struct{}
	present map[string]cri.Image
	// pull answers; nil answers at once. It is called with the number of the call for this image, from 1 on.
	pull func(ctx context.Context, c call) (string, error)
	// find answers instead of present.
	find func(reference string) (cri.Image, error)
	// space answers for the disk; nil is one that is empty.
	space func() ([]cri.Space, error)
	calls []call
	looks int
	// running now, and at most.
	running, most int
}

// call is one of Pull.
type call struct {
	reference string
	login     cri.Credentials
	sandbox   cri.SandboxConfig
	number    int
	at        time.Time
}

func newImages() *images {
	return &images{
		up: true, changed: make(chan struct{}), present: map[string]cri.Image{},
	}
}

func (i *images) Connected() (up bool, changed <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.up, i.changed
}

func (i *images) ImageSpace() ([]cri.Space, error) {
	i.mu.Lock()
	space := i.space
	i.mu.Unlock()
	if space == nil {
		return []cri.Space{{Capacity: 100, Available: 100}}, nil
	}
	return space()
}

// connect changes the connection.
func (i *images) connect(up bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.up = up
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *images) Image(_ context.Context, reference string) (cri.Image, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looks++
	if i.find != nil {
		return i.find(reference)
	}
	found, ok := i.present[reference]
	if !ok {
		return cri.Image{}, cri.ErrNotFound
	}
	return found, nil
}

func (i *images) Pull(
	ctx context.Context, reference string, login cri.Credentials, s cri.SandboxConfig,
) (string, error) {
	i.mu.Lock()
	c := call{reference: reference, login: login, sandbox: s, number: 1, at: time.Now()}
	for _, before := range i.calls {
		if before.reference == reference {
			c.number++
		}
	}
	i.calls = append(i.calls, c)
	i.running++
	i.most = max(i.most, i.running)
	pull := i.pull
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.running--
	}()
	if pull == nil {
		return "sha256:" + reference, nil
	}
	return pull(ctx, c)
}

// pulled are the references that Pull was called with. Calls that begin in one pass come in any order.
func (i *images) pulled() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, c := range i.calls {
		all = append(all, c.reference)
	}
	return all
}

// asked is how often the runtime was called in all, and now are the pulls under way.
func (i *images) asked() (all, now int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.calls) + i.looks, i.running
}

// takes is a pull of some time.
func takes(d time.Duration) func(context.Context, call) (string, error) {
	return func(ctx context.Context, _ call) (string, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return "sha256:1", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// fails is a pull that fails at once.
func fails(err error) func(context.Context, call) (string, error) {
	return func(context.Context, call) (string, error) { return "", err }
}

// events records events, as "object: type reason message".
type events struct {
	mu  sync.Mutex
	all []string
}

var _ record.EventRecorder = &events{}

func (e *events) Event(o runtime.Object, eventType, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	what := fmt.Sprintf("%T", o)
	switch o := o.(type) {
	case *v1beta1.NodeImage:
		what = o.Name
	case *corev1.ObjectReference:
		what = o.Namespace + "/" + o.Name
	}
	e.all = append(e.all, what+": "+eventType+" "+reason+" "+message)
}

func (e *events) Eventf(o runtime.Object, eventType, reason, format string, args ...any) {
	e.Event(o, eventType, reason, fmt.Sprintf(format, args...))
}

func (e *events) AnnotatedEventf(o runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	e.Event(o, eventType, reason, fmt.Sprintf(format, args...))
}

func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all
	e.all = nil
	return all
}
