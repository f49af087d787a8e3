package imagepulljob

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/test/bubbletest"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
)

const (
	// slowness is how long a slow API server takes for a request.
	slowness = 75 * time.Millisecond
	// workers is the default of the manager.
	workers = 10
)

// simulation runs the reconciler with its workers in the time of a bubble, over a slow API server. Nodes answer at
// once.
type simulation struct {
	*testing.T

	server  *apiserver.Server
	queue   queue
	r       *Reconciler
	changes chan func()

	// told counts the writes of NodeImages.
	told atomic.Int64
	// answered is when the last node of a job reported its result, and followed when the status had it.
	answered, followed map[string]time.Time
}

func newSimulation(t *testing.T) *simulation {
	t.Helper()
	s := &simulation{
		T: t, changes: make(chan func(), 10000), answered: map[string]time.Time{}, followed: map[string]time.Time{},
		queue: workqueue.NewTypedRateLimitingQueue(binding.ControllerOptions(controller.Options{}).RateLimiter),
	}
	s.server, s.r = overServer(t, Options{}, func(what string) error {
		if strings.HasPrefix(what, "patch n") {
			s.told.Add(1)
		}
		time.Sleep(slowness) //nolint:forbidigo // the time of the bubble
		return nil
	})
	s.server.OnChange(func(before, after client.Object) { s.changes <- func() { s.changed(before, after) } })
	return s
}

// changed hands on what was written, as a watch does.
func (s *simulation) changed(before, after client.Object) {
	switch now := after.(type) {
	case *v1beta1.NodeImage:
		if before != nil {
			was, is := storedtest.Raw(s, nodeGVK(), before), storedtest.Raw(s, nodeGVK(), now)
			s.r.nodeEvents().Update(s.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, s.queue)
		}
		s.answer(now.DeepCopy())
	case *v1beta1.ImagePullJob:
		if s.followed[now.Name].IsZero() && (before == nil || now.Status.CompletionTime != nil) {
			s.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(now)})
		}
		if s.followed[now.Name].IsZero() && now.Status.CompletionTime != nil {
			s.followed[now.Name] = time.Now()
		}
	}
}

// answer reports the results of a node at once.
func (s *simulation) answer(image *v1beta1.NodeImage) {
	before := image.DeepCopy()
	image.Status = imagepull.Work(image, nil).Status
	for name, status := range image.Status.ImageStatuses {
		t := &status.Tags[0]
		if t.CompletionTime != nil {
			continue
		}
		t.Phase, t.CompletionTime = v1beta1.ImagePhaseSucceeded, ptr.To(metav1.Now())
		s.answered[image.Spec.Images[name].Tags[0].OwnerReferences[0].Name] = time.Now()
	}
	if err := s.server.Status().Patch(s.Context(), image, client.MergeFrom(before)); err != nil {
		s.Error(err)
	}
}

func (s *simulation) work() {
	for {
		request, stopped := s.queue.Get()
		if stopped {
			return
		}
		result, err := s.r.Reconcile(s.Context(), request)
		switch {
		case err != nil:
			s.queue.AddRateLimited(request)
		case result.RequeueAfter > 0:
			s.queue.AddAfter(request, result.RequeueAfter)
		default:
			s.queue.Forget(request)
		}
		s.queue.Done(request)
	}
}

// The status of a job follows its nodes within two seconds, also where many jobs run and the API server is slow. A job
// asks each node once, although nodes report progress more often than the API server answers.
func TestFollowsNodes(t *testing.T) {
	const jobs = 50
	for name, c := range map[string]struct {
		parallelism int32
		secrets     []string
	}{
		"one node at a time":             {1, nil},
		"all nodes at once":              {3, nil},
		"with a secret of the namespace": {3, []string{"login"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Test(t, func(t *testing.T) {
				s := newSimulation(t)
				put(t, s.server, dockerSecret("login", `{}`))
				for i := range 3 {
					put(t, s.server, &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
				}
				for i := range jobs {
					job := jobNamed(fmt.Sprintf("job-%02d", i), fmt.Sprintf("app-%d:1", i))
					job.Spec.Parallelism, job.Spec.PullSecrets = ptr.To(intstr.FromInt32(c.parallelism)), c.secrets
					put(t, s.server, job)
				}
				for range workers {
					go s.work()
				}
				go func() {
					for change := range s.changes {
						change()
					}
				}()
				time.Sleep(5 * time.Minute) //nolint:forbidigo // the time of the bubble
				s.queue.ShutDown()
				bubbletest.Wait()
				close(s.changes)
				var worst time.Duration
				for name, at := range s.answered {
					worst = max(worst, s.followed[name].Sub(at))
				}
				if worst > 2*time.Second || len(s.followed) != jobs {
					t.Errorf("%d of %d jobs have ended, up to %s after their last node", len(s.followed), jobs, worst)
				}
				if told := s.told.Load(); told != 3*jobs {
					t.Errorf("%d writes of NodeImages for %d jobs on 3 nodes", told, jobs)
				}
			})
		})
	}
}
