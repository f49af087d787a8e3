package imagepull

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
)

// The same worlds each time, unless others are asked for: go test ./daemon/imagepull -run
// TestLaws -seed=1000 -worlds=500.
var (
	seed   = flag.Int64("seed", 1, "the first of the random worlds")
	worlds = flag.Int64("worlds", 30, "how many random worlds")
)

// TestLaws has images come, change and go while the runtime is slow, fails, and restarts, the disk fills up, the API
// server refuses writes or loses answers, others settle pulls, and the process on the node restarts. All of that has to
// come up.
func TestLaws(t *testing.T) {
	seen, played := map[string]int{"good": 0, "restarts": 0, "full disk": 0, "limit": 0, "failed": 0, "retries": 0}, 0
	for i := range *worlds {
		t.Run(fmt.Sprintf("-seed=%d", *seed+i), func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := newLaws(w, *seed+i)
				l.play()
				l.count(seen)
				played++ // none where bubbles are skipped
			})
		})
	}
	for what, n := range seen {
		if n == 0 && played > 0 {
			t.Errorf("no world has %q", what)
		}
	}
}

// round is one version of an image.
type round struct {
	image   string
	version int64
}

// laws plays a world.
type laws struct {
	*world
	seed    int64
	r       *rand.Rand
	version map[string]int64
	// good and tries count the pulls that worked, and those that were the registry's to answer.
	good, tries map[round]int
	restarts    int
	// lost says that an answer of the API server was lost.
	lost bool
	disk disk
	// full counts the events about pulls that had no room.
	full int
}

func newLaws(w *world, seed int64) *laws {
	return &laws{
		world:   w,
		seed:    seed,
		r:       rand.New(rand.NewSource(seed)),
		version: map[string]int64{},
		good:    map[round]int{},
		tries:   map[round]int{},
	}
}

func (l *laws) play() {
	l.options.MaxPulls = 1 + l.r.Intn(4)
	l.options.Keyring = &nodeKeyring{}
	l.options.MinFreePercent, l.images.space = 17, l.disk.space
	l.images.pull = l.pull
	l.begin()
	for range 30 {
		l.step()
		l.wait(time.Duration(l.r.Intn(20000)) * time.Millisecond)
	}
	l.calm()
	l.wait(3 * time.Hour)
	l.check()
}

// count adds what a world had in it.
func (l *laws) count(seen map[string]int) {
	seen["good"] += len(l.good)
	seen["restarts"] += l.restarts
	seen["full disk"] += l.full
	if l.images.most == l.options.MaxPulls {
		seen["limit"]++
	}
	for _, status := range l.store.history {
		seen["failed"] += int(status.Failed)
	}
	for of, n := range l.tries {
		if n > 1 && of.version > 0 {
			seen["retries"]++
		}
	}
}

// pull takes its time and then works, fails, or finds the runtime gone. The version is in the sandbox.
func (l *laws) pull(ctx context.Context, c call) (string, error) {
	of := round{image: c.reference}
	_, _ = fmt.Sscan(c.sandbox.Annotations["version"], &of.version)
	// Of its own, for calls come in any order.
	name := fnv.New32a()
	fmt.Fprint(name, c.reference, c.number)
	r := rand.New(rand.NewSource(l.seed<<32 + int64(name.Sum32())))
	fate, length, linger := r.Intn(10), time.Duration(r.Intn(30000))*time.Millisecond, time.Duration(r.Intn(3))*time.Second
	_, changed := l.images.Connected()
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
		return "", cri.ErrUnavailable
	case <-ctx.Done():
		_, _ = takes(linger)(context.WithoutCancel(ctx), c)
		return "", ctx.Err()
	}
	l.images.mu.Lock()
	defer l.images.mu.Unlock()
	l.tries[of]++
	switch {
	case fate < 3:
		return "", errRegistry
	case fate < 4:
		return "", cri.ErrCredentials
	}
	l.good[of]++
	return "sha256:1", nil
}

func (l *laws) step() {
	names := []string{"nginx", "redis", "quay.io/a", "quay.io/b", "slow.io/c", "slow.io/d"}
	name := names[l.r.Intn(len(names))]
	switch l.r.Intn(13) {
	case 0, 1, 2, 3, 4:
		v := l.version[name]
		l.version[name]++
		l.spec(asks(name+":1", v, within(int32(5+l.r.Intn(60))), limited(int32(l.r.Intn(3)))), func(n *v1beta1.NodeImage) {
			i := n.Spec.Images[name]
			i.SandboxConfig = &v1beta1.SandboxConfig{Annotations: map[string]string{"version": fmt.Sprint(v)}}
			n.Spec.Images[name] = i
		})
	case 5:
		l.spec(leaves(name))
	case 6:
		l.settleElsewhere(name)
	case 7:
		up, _ := l.images.Connected()
		l.images.connect(!up)
	case 8:
		l.store.set(func() { l.store.refuse = apierrors.NewServiceUnavailable("away") })
	case 9:
		l.lost = true
		l.store.set(func() { l.store.lose = true })
	case 10:
		l.calm()
	case 11:
		l.disk.set(l.r.Intn(1000))
	default:
		l.calm()
		l.restarts++
		l.end()
		l.begin()
	}
}

// calm ends all trouble.
func (l *laws) calm() {
	l.store.set(func() { l.store.refuse, l.store.lose = nil, false })
	l.disk.set(0)
	if up, _ := l.images.Connected(); !up {
		l.images.connect(true)
	}
	l.settle()
}

// elsewhere marks what another client has settled.
const elsewhere = "settled elsewhere"

func (l *laws) settleElsewhere(name string) {
	l.store.change(func(n *v1beta1.NodeImage) {
		for i, t := range n.Status.ImageStatuses[name].Tags {
			if t.CompletionTime == nil {
				s := &n.Status.ImageStatuses[name].Tags[i]
				s.Phase, s.CompletionTime, s.Message = v1beta1.ImagePhaseFailed, ptr.To(metav1.Now()), elsewhere
			}
		}
	})
	l.settle()
}

func (l *laws) check() {
	l.Helper()
	if l.images.most > l.options.MaxPulls || l.images.running > 0 {
		l.Errorf("%d pulls at the same time, %d are allowed; %d go on", l.images.most, l.options.MaxPulls, l.images.running)
	}
	n := l.store.stored()
	plan := imagepull.Work(n, nil)
	if len(plan.Start) > 0 {
		l.Errorf("%d pulls are not settled: %s", len(plan.Start), l.told())
	}
	if diff := cmp.Diff(plan.Status, n.Status); diff != "" {
		l.Errorf("status (-want +got):\n%s", diff)
	}
	ours := l.checkSettled()
	for of, n := range l.good {
		if n > 1+l.restarts {
			l.Errorf("%v was pulled %d times", of, n)
		}
	}
	for of, n := range l.tries {
		if n > 3*(1+l.restarts) {
			l.Errorf("%v was tried %d times", of, n)
		}
	}
	told := map[string]int{}
	for _, e := range l.events.take() {
		if strings.HasPrefix(e, "n1: ") {
			told[strings.Fields(e)[4]]++
		}
		if strings.Contains(e, errNoRoom.Error()) {
			l.full++
		}
	}
	for image, n := range told {
		if n > ours[image] || n < ours[image] && !l.lost {
			l.Errorf("%d events about %s, which was settled %d times", n, image, ours[image])
		}
	}
}

// checkSettled reads all that was written, in which nothing that is settled changes, and counts what we have settled,
// by image.
func (l *laws) checkSettled() map[string]int {
	ours := map[string]int{}
	settled := map[round]v1beta1.ImageTagStatus{}
	for _, status := range l.store.history {
		for name, image := range status.ImageStatuses {
			for _, t := range image.Tags {
				of := round{name + ":" + t.Tag, t.Version}
				before, was := settled[of]
				switch {
				case was:
					if diff := cmp.Diff(before, t); diff != "" {
						l.Errorf("%v was settled and has changed:\n%s", of, diff)
					}
				case t.CompletionTime != nil:
					settled[of] = t
					if t.Message != elsewhere {
						ours[of.image]++
					}
				}
			}
		}
	}
	return ours
}
