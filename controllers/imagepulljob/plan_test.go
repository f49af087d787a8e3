package imagepulljob

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

var (
	at        = time.Unix(1_000_000, 0)
	resource  = schema.GroupResource{Resource: "nodeimages"}
	missing   = apierrors.NewNotFound(resource, "n")
	outdated  = apierrors.NewConflict(resource, "n", errors.New("another client has changed it"))
	refusal   = apierrors.NewForbidden(resource, "n", errors.New("a webhook denies it"))
	errBroken = errors.New("the connection broke")
)

// nodesOf are NodeImages without images.
func nodesOf(names ...string) []*nodeImage {
	var all []*nodeImage
	for _, name := range names {
		all = append(all, &nodeImage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "1"}})
	}
	return all
}

// pulled is a NodeImage whose node has the image of a job already.
func pulled(name string, job *pullJob) *nodeImage {
	request := imagepull.Request{Job: job, Now: at}
	node, err := request.For(name).Apply(nodesOf(name)[0])
	if err != nil {
		panic(err)
	}
	ref := imagepull.Reference{Name: "nginx", Tag: "1"}
	node.Status.ImageStatuses = map[string]v1beta1.ImageStatus{ref.Name: {Tags: []v1beta1.ImageTagStatus{{
		Tag: ref.Tag, Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: &metav1.Time{Time: at},
	}}}}
	return node
}

// script answers the writes of a pass, by what they are and their number.
type script struct {
	sent []string
	// answers are the errors of writes, as "Patch n1", each for one time. Those without one succeed.
	answers map[string][]error
	// objects are what is answered to a write that is listed in answers.
	objects map[string]write.Object
}

// run makes the pass, and returns its error.
func (s *script) run(p pass) error {
	for stage := p.Next(); len(stage) > 0; stage = p.Next() {
		for queue := stage; len(queue) > 0; {
			w := queue[0]
			queue = append(queue[1:], p.Answer(at, w, s.answer(w), s.err(w))...)
		}
	}
	return p.Err()
}

func describe(w *write.Write) string {
	return strings.TrimSpace(string(w.Verb) + " " + w.Object.GetName() + " " + w.Subresource)
}

func (s *script) answer(w *write.Write) write.Object {
	name := describe(w)
	s.sent = append(s.sent, name)
	if len(s.answers[name]) > 0 {
		return s.objects[name]
	}
	object, is := w.Object.DeepCopyObject().(write.Object)
	if !is {
		return nil
	}
	if node, typed := object.(*nodeImage); typed && w.Verb == write.Patch {
		if err := patch(node, w); err != nil {
			panic(err)
		}
	}
	object.SetResourceVersion(object.GetResourceVersion() + "0")
	return object
}

// patch applies a write to a NodeImage.
func patch(node *nodeImage, w *write.Write) error {
	data, err := w.Data()
	if err != nil || w.Type == types.MergePatchType {
		return errors.Join(err, json.Unmarshal(data, node))
	}
	ops, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return err
	}
	was, err := json.Marshal(node)
	if err != nil {
		return err
	}
	if data, err = ops.Apply(was); err != nil {
		return err
	}
	*node = nodeImage{}
	return json.Unmarshal(data, node)
}

func (s *script) err(w *write.Write) error {
	name := describe(w)
	if len(s.answers[name]) == 0 {
		return nil
	}
	err := s.answers[name][0]
	s.answers[name] = s.answers[name][1:]
	return err
}

// A pass asks nodes, and reports; what one node refuses does not concern the others.
func TestAskNodes(t *testing.T) {
	full := nodesOf("b")[0]
	full.Spec.Images = map[string]v1beta1.ImageSpec{}
	for i := range imagepull.MaxImages {
		full.Spec.Images[fmt.Sprint("other-", i)] = v1beta1.ImageSpec{}
	}
	for name, c := range map[string]struct {
		nodes   []*nodeImage
		answers map[string][]error
		objects map[string]write.Object
		want    string
		message string
		fails   error
	}{
		"all nodes take the image": {
			nodes: nodesOf("a", "b"),
			want:  "Patch a, Patch b, Patch web status",
		},
		"a node that is gone is not selected": {
			nodes:   nodesOf("a", "b"),
			answers: map[string][]error{"Patch a": {missing}},
			want:    "Patch a, Patch b, Patch web status",
		},
		"a node that refuses is reported, and the job goes on": {
			nodes:   nodesOf("a", "b"),
			answers: map[string][]error{"Patch a": {refusal}},
			want:    "Patch a, Patch b, Patch web status",
			message: "NodeImages that take no change: 1", fails: refusal,
		},
		"an API server that fails ends the round, and the status is written": {
			nodes:   nodesOf("a", "b"),
			answers: map[string][]error{"Patch a": {errBroken}},
			want:    "Patch a, Patch b, Patch web status", fails: errBroken,
		},
		"another client has changed the NodeImage": {
			nodes:   nodesOf("a"),
			answers: map[string][]error{"Patch a": {outdated}},
			want:    "Patch a, Get a, Patch a, Patch web status",
		},
		"another client has changed it, and it has no room now": {
			nodes:   nodesOf("b"),
			answers: map[string][]error{"Patch b": {outdated}, "Get b": {nil}},
			objects: map[string]write.Object{"Get b": full},
			want:    "Patch b, Get b, Patch web status",
			message: "NodeImages without room for another image: 1",
		},
		"the NodeImage is gone after a conflict": {
			nodes:   nodesOf("a", "b"),
			answers: map[string][]error{"Patch a": {outdated}, "Get a": {missing}},
			want:    "Patch a, Patch b, Get a, Patch web status",
		},
		"the NodeImage cannot be read after a conflict": {
			nodes:   nodesOf("a"),
			answers: map[string][]error{"Patch a": {outdated}, "Get a": {errBroken}},
			want:    "Patch a, Get a, Patch web status", fails: errBroken,
		},
		"another job has changed the NodeImage": {
			nodes:   nodesOf("a"),
			answers: map[string][]error{"Patch a": {outdated}},
			objects: map[string]write.Object{"Patch a": nodesOf("a")[0]},
			want:    "Patch a, Patch a, Patch web status",
		},
		"other clients write all the time": {
			nodes:   nodesOf("a"),
			answers: map[string][]error{"Patch a": {outdated, outdated, outdated, outdated, outdated, outdated}},
			want:    strings.Repeat("Patch a, Get a, ", 5) + "Patch a, Patch web status", fails: outdated,
		},
		"the status cannot be written": {
			nodes:   nodesOf("a"),
			answers: map[string][]error{"Patch web status": {errBroken}},
			want:    "Patch a, Patch web status", fails: errBroken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobNamed("web", "nginx:1")
			job.Default()
			job.Spec.Parallelism = ptr.To(intstr.FromInt32(10))
			p := newPlan(&snapshot{job: job, now: at, nodes: c.nodes}, Options{}.withDefaults(), stored.Kind{GVK: gvk()})
			s := &script{answers: c.answers, objects: c.objects}
			err := s.run(p.pass())
			if got := strings.Join(s.sent, ", "); got != c.want {
				t.Errorf("sent %s\nwant %s", got, c.want)
			}
			if (err != nil) != (c.fails != nil) || c.fails != nil && !errors.Is(err, c.fails) {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(p.review.Status.Message, c.message) {
				t.Errorf("message %q", p.review.Status.Message)
			}
			if failed := errors.Is(err, errBroken) && strings.HasPrefix(err.Error(), "write status"); p.reported == failed {
				t.Errorf("reported %t after %v", p.reported, err)
			}
		})
	}
}

// The finalizer comes before the copies, and the copies before the nodes; once the job has ended it is the other way
// round.
func TestSecretsOfPass(t *testing.T) {
	ended := func(j *pullJob) { j.Status.CompletionTime = &metav1.Time{Time: at} }
	held := func(j *pullJob) { j.Finalizers = []string{"a", v1beta1.ImagePullJobFinalizerKey} }
	named := func(j *pullJob) { j.Spec.PullSecrets = []string{"login"} }
	deleted := func(j *pullJob) { j.DeletionTimestamp = &metav1.Time{Time: at} }
	expired := func(j *pullJob) {
		j.Status.CompletionTime = &metav1.Time{Time: at.Add(-time.Hour)}
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To[int32](60)
	}
	for name, c := range map[string]struct {
		change  []func(*pullJob)
		among   bool
		answers map[string][]error
		want    string
		message string
		fails   error
	}{
		"no secrets": {want: "Patch n, Patch web status"},
		"secrets": {
			change: []func(*pullJob){named}, want: "Patch web, Ask web, Patch n, Patch web status",
		},
		"the finalizer is there": {
			change: []func(*pullJob){named, held}, want: "Ask web, Patch n, Patch web status",
		},
		"a job among the copies needs no finalizer": {
			change: []func(*pullJob){named}, among: true, want: "Ask web, Patch n, Patch web status",
		},
		"the finalizer is refused": {
			change:  []func(*pullJob){named},
			answers: map[string][]error{"Patch web": {refusal}},
			want:    "Patch web, Patch web status", fails: refusal,
		},
		"the namespace takes no copies": {
			change:  []func(*pullJob){named, held},
			answers: map[string][]error{"Ask web": {missing}},
			want:    "Ask web, Patch web status", fails: missing,
			message: "pull secrets cannot be copied to namespace " + v1beta1.DefaultImagePullSecretNamespace,
		},
		"an ended job without a finalizer releases what it may have": {
			change: []func(*pullJob){ended}, want: "Ask web",
		},
		"an ended job is no longer held": {
			change: []func(*pullJob){ended, held}, want: "Ask web, Patch web",
		},
		"copies that cannot be released hold the job": {
			change:  []func(*pullJob){deleted, held},
			answers: map[string][]error{"Ask web": {errBroken}},
			want:    "Ask web", fails: errBroken,
		},
		"a job that is gone needs no finalizer removed": {
			change:  []func(*pullJob){deleted, held},
			answers: map[string][]error{"Patch web": {missing}},
			want:    "Ask web, Patch web",
		},
		"a finished job is deleted": {
			change: []func(*pullJob){expired, held}, want: "Ask web, Patch web, Delete web",
		},
		"a finished job is gone": {
			change:  []func(*pullJob){expired},
			answers: map[string][]error{"Delete web": {missing}},
			want:    "Ask web, Delete web",
		},
		"a finished job cannot be deleted": {
			change:  []func(*pullJob){expired},
			answers: map[string][]error{"Delete web": {refusal}},
			want:    "Ask web, Delete web", fails: refusal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobNamed("web", "nginx:1")
			for _, change := range c.change {
				change(job)
			}
			job.Default()
			o := Options{}.withDefaults()
			if c.among {
				o.SecretNamespace = job.Namespace
			}
			p := newPlan(&snapshot{job: job, now: at, nodes: nodesOf("n")}, o, stored.Kind{GVK: gvk()})
			s := &script{answers: c.answers}
			err := s.run(p.pass())
			if got := strings.Join(s.sent, ", "); got != c.want {
				t.Errorf("sent %s\nwant %s", got, c.want)
			}
			if (err != nil) != (c.fails != nil) || c.fails != nil && !errors.Is(err, c.fails) {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(p.review.Status.Message, c.message) {
				t.Errorf("message %q", p.review.Status.Message)
			}
		})
	}
}

// A job that completes in a pass ends in it; one that is refused reports that once; one without nodes waits for them.
func TestEndOfPass(t *testing.T) {
	job := func() *pullJob {
		job := jobNamed("web", "nginx:1")
		job.Default()
		return job
	}
	for name, c := range map[string]struct {
		snapshot func() *snapshot
		want     string
		after    time.Duration
		terminal bool
	}{
		"the last node has the image": {
			snapshot: func() *snapshot {
				j := job()
				j.Finalizers = []string{v1beta1.ImagePullJobFinalizerKey}
				return &snapshot{job: j, now: at, nodes: []*nodeImage{pulled("n", j)}}
			},
			want: "Ask web, Patch web status, Ask web, Patch web",
		},
		"the job cannot run": {
			snapshot: func() *snapshot { return &snapshot{job: job(), now: at, invalid: errBroken} },
			want:     "Patch web status", terminal: true,
		},
		"the job cannot run, and its status says so": {
			snapshot: func() *snapshot {
				j := job()
				j.Status.Message = "job cannot run: " + errBroken.Error()
				return &snapshot{job: j, now: at, invalid: errBroken}
			},
			terminal: true,
		},
		"no node is known yet": {
			snapshot: func() *snapshot {
				j := job()
				j.CreationTimestamp = metav1.Time{Time: at}
				return &snapshot{job: j, now: at}
			},
			after: 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlan(c.snapshot(), Options{}.withDefaults(), stored.Kind{GVK: gvk()})
			s := &script{}
			err := s.run(p.pass())
			if got := strings.Join(s.sent, ", "); got != c.want {
				t.Errorf("sent %s\nwant %s", got, c.want)
			}
			if errors.Is(err, errBroken) != c.terminal || p.after != c.after {
				t.Errorf("got %v, and a pass after %s", err, p.after)
			}
			if told := p.refused != ""; told != (c.terminal && c.want != "") {
				t.Errorf("refused: %q", p.refused)
			}
		})
	}
}
