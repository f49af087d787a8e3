package imagepulljob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

var (
	at        = time.Unix(1_000_000, 0)
	resource  = schema.GroupResource{Resource: "nodeimages"}
	missing   = apierrors.NewNotFound(resource, "n")
	outdated  = apierrors.NewConflict(resource, "n", errors.New("another client has changed it"))
	refusal   = apierrors.NewForbidden(resource, "n", errors.New("a webhook denies it"))
	errBroken = errors.New("the connection broke")
)

// full is a NodeImage without room.
func full(name string) *nodeImage {
	node := &nodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.Images = map[string]v1beta1.ImageSpec{}
	for i := range imagepull.MaxImages {
		node.Spec.Images[fmt.Sprint("other-", i)] = v1beta1.ImageSpec{}
	}
	return node
}

func empty(name string) *nodeImage { return &nodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// pulled is a NodeImage whose node has pulled the image of a job.
func pulled(t *testing.T, name string, job *pullJob) *nodeImage {
	t.Helper()
	node, err := imagepull.Request{Job: job, Now: at}.For(name).Apply(empty(name))
	if err != nil {
		t.Fatal(err)
	}
	node.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
		Tag: "1", Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: &metav1.Time{Time: at},
	}}}}
	return node
}

// reconciles is one reconcile of the job web.
type reconciles struct {
	why     string
	change  func(*pullJob)
	objects func(t *testing.T, job *pullJob) []client.Object
	options Options
	// fails are the errors of requests, each for one time.
	fails map[string][]error
	// meanwhile is called at the first request that fails.
	meanwhile func(*apiserver.Server) error
	// want are the requests, sorted where they run in parallel.
	want     string
	parallel bool

	err     error
	message string
	after   time.Duration
}

func (c reconciles) test(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	var server *apiserver.Server
	c.options.Now = func() time.Time { return at }
	server, r := overServer(t, c.options, func(what string) error {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, what)
		if len(c.fails[what]) == 0 {
			return nil
		}
		err := c.fails[what][0]
		c.fails[what] = c.fails[what][1:]
		if c.meanwhile != nil {
			if err := c.meanwhile(server); err != nil {
				t.Error(err)
			}
			c.meanwhile = nil
		}
		return err
	})
	job := jobNamed("web", "nginx:1")
	job.Default()
	job.Spec.Parallelism = ptr.To(intstr.FromInt32(10))
	if c.change != nil {
		c.change(job)
	}
	put(t, server, job)
	put(t, server, c.objects(t, job)...)
	name := client.ObjectKeyFromObject(job)
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: name})
	if c.parallel {
		slices.Sort(sent)
	}
	if got := strings.Join(sent, ", "); got != c.want {
		t.Errorf("%s: sent %s\nwant %s", c.why, got, c.want)
	}
	if (err != nil) != (c.err != nil) || c.err != nil && !errors.Is(err, c.err) || result.RequeueAfter != c.after {
		t.Errorf("%s: got %v, and %v", c.why, result, err)
	}
	var is pullJob
	if err := server.Get(t.Context(), name, &is); client.IgnoreNotFound(err) != nil ||
		!strings.Contains(is.Status.Message, c.message) {
		t.Errorf("%s: message %q, %v", c.why, is.Status.Message, err)
	}
}

func nodesOf(nodes ...*nodeImage) func(*testing.T, *pullJob) []client.Object {
	return func(*testing.T, *pullJob) (all []client.Object) {
		for _, node := range nodes {
			all = append(all, node.DeepCopy())
		}
		return all
	}
}

func TestAskNodes(t *testing.T) {
	one, two := nodesOf(empty("a")), nodesOf(empty("a"), empty("b"))
	many, refused := make([]*nodeImage, 60), map[string][]error{}
	for i := range many {
		many[i] = empty(fmt.Sprintf("n%02d", i))
		refused["patch "+many[i].Name] = []error{refusal}
	}
	patches := func(nodes int) (requests string) {
		for _, node := range many[:nodes] {
			requests += "patch " + node.Name + ", "
		}
		return requests + "patch web status"
	}
	for name, c := range map[string]reconciles{
		"all nodes": {why: "the first batch has one node", objects: two, want: "patch a, patch b, patch web status"},
		"gone": {
			why: "a node that is gone is not selected", objects: two,
			fails: map[string][]error{"patch a": {missing}}, want: "patch a, patch b, patch web status",
		},
		"refused": {
			why: "a node that refuses is reported, and the job goes on", objects: two,
			change: func(j *pullJob) { j.Spec.Parallelism = nil },
			fails:  map[string][]error{"patch a": {refusal}}, want: "patch a, patch b, patch web status",
			message: "NodeImages that take no change: 1", err: refusal,
		},
		"outage": {
			why: "an API server that fails is not asked for each node, and the status is written", objects: two,
			fails: map[string][]error{"patch a": {errBroken}}, want: "patch a, patch web status", err: errBroken,
		},
		"conflict": {
			why: "the NodeImage is read again", objects: one,
			fails: map[string][]error{"patch a": {outdated}}, want: "patch a, get a, patch a, patch web status",
		},
		"no room after a conflict": {
			why: "the job waits for room", objects: one, fails: map[string][]error{"patch a": {outdated}},
			meanwhile: func(s *apiserver.Server) error { return s.Put(full("a")) },
			want:      "patch a, get a, patch web status",
			message:   "NodeImages without room for another image: 1", after: time.Minute,
		},
		"gone after a conflict": {
			why: "the node is not selected", objects: two,
			fails: map[string][]error{"patch a": {outdated}, "get a": {missing}},
			want:  "patch a, get a, patch b, patch web status",
		},
		"unreadable after a conflict": {
			why: "the job is retried", objects: one,
			fails: map[string][]error{"patch a": {outdated}, "get a": {errBroken}}, want: "patch a, get a, patch web status",
			err: errBroken,
		},
		"other clients write all the time": {
			why: "conflicts are bounded", objects: one,
			fails: map[string][]error{"patch a": {outdated, outdated, outdated, outdated, outdated, outdated}},
			want:  strings.Repeat("patch a, get a, ", 5) + "patch a, patch web status", err: outdated,
		},
		"other nodes have the image": {
			why: "each makes room for the next one, and rounds are bounded", want: patches(32), after: time.Millisecond,
			change: func(j *pullJob) {
				j.Spec.Parallelism, j.Spec.ImagePullPolicy = ptr.To(intstr.FromInt32(1)), v1beta1.PullIfNotPresent
			},
			objects: func(t *testing.T, _ *pullJob) (all []client.Object) {
				for _, node := range many[:40] {
					all = append(all, pulled(t, node.Name, jobNamed("other", "nginx:1")))
				}
				return all
			},
		},
		"all refuse": {
			why: "refusals are bounded", objects: nodesOf(many...), fails: refused, want: patches(18), parallel: true,
			change:  func(j *pullJob) { j.Spec.Parallelism = ptr.To(intstr.FromInt32(9)) },
			message: "NodeImages that take no change: 18", err: refusal,
		},
		"the status cannot be written": {
			why: "the job is retried", objects: one,
			fails: map[string][]error{"patch web status": {errBroken}}, want: "patch a, patch web status", err: errBroken,
		},
	} {
		t.Run(name, c.test)
	}
}

// The copies come before the nodes.
func TestClaimSecrets(t *testing.T) {
	const copied = "login-00398ab3020b295e"
	named := func(j *pullJob) { j.Spec.PullSecrets = []string{"login"} }
	with := func(t *testing.T, _ *pullJob) []client.Object {
		return []client.Object{empty("n"), dockerSecret("login", "{}")}
	}
	for name, c := range map[string]reconciles{
		"copied": {
			why: "one read and one write of the secret", change: named, objects: with,
			want: "get login, patch " + copied + ", patch n, patch web status",
		},
		"missing": {
			why: "the nodes pull without it", change: named, objects: nodesOf(empty("n")),
			want: "get login, patch n, patch web status",
		},
		"among the copies": {
			why: "the nodes may read it", change: named, objects: with, options: Options{SecretNamespace: "shop"},
			want: "patch n, patch web status",
		},
		"no place": {
			why: "the namespace takes no copies", change: named, objects: with,
			fails: map[string][]error{"patch " + copied: {missing}}, want: "get login, patch " + copied + ", patch web status",
			message: "pull secrets cannot be copied to namespace " + v1beta1.DefaultImagePullSecretNamespace, err: missing,
		},
	} {
		t.Run(name, c.test)
	}
}

func TestEnd(t *testing.T) {
	ended := func(j *pullJob) { j.Status.CompletionTime = &metav1.Time{Time: at} }
	held := func(j *pullJob) {
		ended(j)
		j.Finalizers = []string{"a", v1beta1.ImagePullJobFinalizerKey}
	}
	expires := func(ttl int32) func(j *pullJob) {
		return func(j *pullJob) {
			held(j)
			j.Status.CompletionTime.Time = at.Add(-time.Minute)
			j.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To(ttl)
		}
	}
	none := nodesOf()
	copied := func(*testing.T, *pullJob) []client.Object {
		login := dockerSecret("login-copy", "{}")
		login.Namespace = v1beta1.DefaultImagePullSecretNamespace
		login.Annotations = map[string]string{
			v1beta1.ImagePullSecretSourceKey: "shop/login", v1beta1.ImagePullSecretReferencesKey: "shop/web",
		}
		return []client.Object{login}
	}
	for name, c := range map[string]reconciles{
		"the last node has the image": {
			why: "the end is the next reconcile", want: "patch web status", message: "job has completed",
			objects: func(t *testing.T, job *pullJob) []client.Object { return []client.Object{pulled(t, "n", job)} },
		},
		"ended": {why: "nothing is left", change: ended, objects: none},
		"held":  {why: "the finalizer of an older version goes", change: held, objects: none, want: "patch web"},
		"stays": {
			why: "its time has not come", change: expires(90), objects: none, want: "patch web", after: 30 * time.Second,
		},
		"expired": {why: "it is deleted", change: expires(60), objects: none, want: "patch web, delete web"},
		"deleted by another client": {
			why: "it is gone", change: expires(60), objects: none, want: "patch web, delete web",
			fails: map[string][]error{"delete web": {missing}},
		},
		"its copy is deleted": {
			why: "the job is not held after that", change: held, objects: copied, want: "delete login-copy, patch web",
		},
		"its copy cannot be deleted": {
			why: "the job is held", change: held, objects: copied, want: "delete login-copy", err: refusal,
			fails: map[string][]error{"delete login-copy": {refusal}},
		},
		"cannot be deleted": {
			why: "it is retried", change: expires(60), objects: none, want: "patch web, delete web",
			fails: map[string][]error{"delete web": {refusal}}, err: refusal,
		},
		"cannot run": {
			why: "the status says so", change: func(j *pullJob) { j.Spec.Image = "Not An Image" }, objects: none,
			want: "patch web status", message: "job cannot run: spec.image", err: reconcile.TerminalError(nil),
		},
		"no node is known yet": {
			why: "caches may lag", change: func(j *pullJob) { j.CreationTimestamp = metav1.Time{Time: at} }, objects: none,
			after: newborn,
		},
	} {
		t.Run(name, c.test)
	}
}

func TestWait(t *testing.T) {
	for why, c := range map[string]struct {
		age, want time.Duration
		change    func(*snapshot)
	}{
		"new":                  {500 * time.Millisecond, 1500 * time.Millisecond, func(*snapshot) {}},
		"old enough":           {3 * time.Second, -time.Second, func(*snapshot) {}},
		"it has nodes":         {0, 0, func(s *snapshot) { s.nodes = []*nodeImage{empty("a")} }},
		"it has begun":         {0, 0, func(s *snapshot) { s.job.Status.StartTime = &metav1.Time{} }},
		"made a little later":  {-time.Second, 2 * time.Second, func(*snapshot) {}},
		"made in a far future": {-time.Hour, 0, func(*snapshot) {}},
	} {
		s := &snapshot{job: jobNamed("web", "nginx"), request: imagepull.Request{Now: at}}
		s.job.CreationTimestamp = metav1.NewTime(at.Add(-c.age))
		c.change(s)
		if got := s.wait(); got != c.want {
			t.Errorf("%s: wait %s, want %s", why, got, c.want)
		}
	}
}
