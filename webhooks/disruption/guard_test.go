package disruption_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/workload"
)

// TestReview: what one disruption decides, records and costs.
func TestGuardReview(t *testing.T) {
	for name, c := range map[string]struct {
		why     string
		allowed int32
		budget  func(*policyv1beta1.PodUnavailableBudget)
		pod     func(*corev1.Pod)
		change  func(*disruption.Disruption)
		// meanwhile changes the stored budget after the cache has read it.
		meanwhile func(*cluster)
		want      pub.Reason
		admitted  bool
		writes    []string
		reads     int32
		left      int32
		update    bool
	}{
		"room": {
			why: "a disruption that fits costs one write and no read", allowed: 2, want: pub.Spent, admitted: true, left: 1,
			writes: []string{"200"},
		},
		"update": {
			why:      "an update is recorded apart",
			allowed:  2,
			want:     pub.Spent,
			admitted: true,
			left:     1,
			update:   true,
			writes:   []string{"200"},
			change:   func(d *disruption.Disruption) { d.Operation = pub.Update },
		},
		"a group that is unavailable already": {
			why: "a further pod of the group costs nothing, and is recorded", want: pub.GroupUnavailable, admitted: true,
			writes: []string{"200"},
			pod:    func(p *corev1.Pod) { p.Labels["group"] = "g" },
			budget: func(b *policyv1beta1.PodUnavailableBudget) {
				b.Spec.PodGroupPolicy = &policyv1beta1.PodGroupPolicy{GroupLabelKey: "group", GroupSize: 2}
				b.Status.UnavailablePodGroups = []string{"g"}
			},
		},
		"exhausted": {why: "a refusal costs nothing", want: pub.Exhausted},
		"dry run": {
			why:      "a dry run is admitted without a record",
			allowed:  1,
			want:     pub.Spent,
			admitted: true,
			left:     1,
			change:   func(d *disruption.Disruption) { d.DryRun = true },
		},
		"other pod": {
			why: "a pod that no budget selects costs nothing", want: disruption.Unguarded, admitted: true,
			pod: func(p *corev1.Pod) { p.Labels = nil },
		},
		"recorded long ago": {
			why:      "a record that is about to end is written again",
			allowed:  2,
			want:     pub.Spent,
			admitted: true,
			left:     1,
			writes:   []string{"200"},
			budget: func(b *policyv1beta1.PodUnavailableBudget) {
				b.Status.DisruptedPods = map[string]metav1.Time{"web-000": metav1.NewTime(noon().Add(-15 * time.Second))}
			},
		},
		"recorded meanwhile": {
			why:      "a record of another replica counts, so that no pod is spent twice",
			allowed:  2,
			want:     pub.AlreadyRecorded,
			admitted: true,
			left:     1,
			meanwhile: func(c *cluster) {
				c.put("a", 1, func(b *policyv1beta1.PodUnavailableBudget) {
					b.Status.DisruptedPods = map[string]metav1.Time{"web-000": metav1.NewTime(noon())}
				})
			},
			writes: []string{"409"},
			reads:  1,
		},
		"exhausted meanwhile": {
			why: "a cache that lags spends nothing that is gone", allowed: 2, want: pub.Exhausted,
			meanwhile: func(c *cluster) { c.put("a", 0, nil) }, writes: []string{"409"}, reads: 1,
		},
		"written meanwhile": {
			why:       "a conflict refuses nothing",
			allowed:   2,
			want:      pub.Spent,
			admitted:  true,
			left:      4,
			meanwhile: func(c *cluster) { c.put("a", 5, nil) },
			writes:    []string{"409", "200"},
			reads:     1,
		},
		"deleted meanwhile": {
			why: "a budget that is gone admits", allowed: 2, want: disruption.Unguarded, admitted: true, left: -1,
			meanwhile: func(c *cluster) {
				if err := c.Delete(c.Context(), c.read("a")); err != nil {
					c.Fatal(err)
				}
			},
			writes: []string{"404"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			s.put("a", c.allowed, c.budget)
			g, x := s.replica(nil)
			s.show(x, "a")
			if c.meanwhile != nil {
				c.meanwhile(s)
				s.Requests()
			}
			d := disruption.Disruption{Pod: web("web-000"), Operation: pub.Evict, User: "ann"}
			if c.pod != nil {
				c.pod(d.Pod)
			}
			if c.change != nil {
				c.change(&d)
			}
			got, err := g.Review(t.Context(), d)
			if err != nil || got.Reason != c.want || got.Allowed != c.admitted {
				t.Fatalf("%s: %+v, %v", c.why, got.Verdict, err)
			}
			if diff := cmp.Diff(c.writes, s.codes()); diff != "" || s.reads.Load() != c.reads {
				t.Errorf("%s: %d live reads, writes (-want +got):\n%s", c.why, s.reads.Load(), diff)
			}
			if c.left < 0 {
				return
			}
			status := s.read("a").Status
			updatedAt, updated := status.UnavailablePods["web-000"]
			if disruptedAt := status.DisruptedPods["web-000"]; c.want == pub.Spent && !d.DryRun &&
				!disruptedAt.Time.Equal(noon()) && !updatedAt.Time.Equal(noon()) {
				t.Errorf("%s: the time of the record is old: %+v", c.why, status)
			}
			if status.UnavailableAllowed != c.left || c.want == pub.Spent && !d.DryRun && updated != c.update {
				t.Errorf("%s: status %+v", c.why, status)
			}
		})
	}
}

// TestReviewGrouped: disruptions that arrive while a write is under way share the next write.
func TestReviewGrouped(t *testing.T) {
	s := newCluster(t)
	s.put("a", 40, nil)
	hold := &slow{Client: s, open: make(chan struct{}), held: make(chan struct{}, 1)}
	g, x := s.replica(func(l *disruption.GuardLookups, _ *disruption.GuardOptions) { l.Client = hold })
	s.show(x, "a")
	var admitted, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	review := func(pod *corev1.Pod) {
		all.Add(1)
		go func() {
			defer all.Done()

			d, err := g.Review(ctx, disruption.Disruption{Pod: pod, Operation: pub.Evict})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case d.Allowed:
				admitted++
			case d.Reason == pub.Exhausted:
				refused++
			default:
				t.Errorf("verdict %+v", d.Verdict)
			}
		}()
	}
	pods := webs(100)
	review(pods[0])
	<-hold.held
	for _, pod := range pods[1:] {
		review(pod)
	}
	for g.Waiting() < 99 && ctx.Err() == nil {
		runtime.Gosched() // the first write is held until the others wait
	}
	close(hold.open)
	all.Wait()
	writes := s.codes()
	t.Logf("100 evictions under a budget of 40: %d admitted, %d refused, %d writes, %d live reads",
		admitted, refused, len(writes), s.reads.Load())
	if status := s.read("a").Status; admitted != 40 || refused != 60 || len(status.DisruptedPods) != 40 ||
		status.UnavailableAllowed != 0 {
		t.Errorf("%d admitted, %d refused, %d recorded, %d left",
			admitted, refused, len(status.DisruptedPods), status.UnavailableAllowed)
	}
	if len(writes) != 2 || s.reads.Load() > 0 {
		t.Errorf("%d live reads, writes %q", s.reads.Load(), writes)
	}
}

// TestReplicas: replicas with caches that lag race for one budget, while a controller writes the status, too.
func TestReplicas(t *testing.T) {
	const replicas, pods, allowed = 3, 100, 37
	s := newCluster(t)
	s.put("a", allowed, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	reasons := map[pub.Reason]int{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	guards := make([]*disruption.Guard, replicas)
	for i := range guards {
		var x *disruption.BudgetIndex
		guards[i], x = s.replica(nil)
		s.show(x, "a") // the caches never learn of a spend
	}
	for i, pod := range webs(pods) {
		all.Add(1)
		go func() {
			defer all.Done()

			d, err := guards[i%replicas].Review(ctx, disruption.Disruption{Pod: pod, Operation: pub.Evict})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			reasons[d.Reason]++
		}()
	}
	all.Wait()
	writes, status := s.codes(), s.read("a").Status
	t.Logf("%d evictions at %d replicas under a budget of %d: %v; %d writes, %d reads after conflicts",
		pods, replicas, allowed, reasons, len(writes), s.reads.Load())
	if reasons[pub.Spent] != allowed || reasons[pub.Exhausted] != pods-allowed || len(status.DisruptedPods) != allowed ||
		status.UnavailableAllowed != 0 {
		t.Errorf("%v, %d recorded, %d left", reasons, len(status.DisruptedPods), status.UnavailableAllowed)
	}
}

// TestReviewFails: a write that fails refuses with its error, and one that is canceled records nothing later.
func TestReviewFails(t *testing.T) {
	s := newCluster(t)
	s.put("a", 2, nil)
	hold := &slow{
		Client: s,
		open:   make(chan struct{}),
		fault: apierrors.NewForbidden(policyv1beta1.GroupVersion.WithResource("podunavailablebudgets").GroupResource(),
			"a", errors.New("no right")),
	}
	g, x := s.replica(func(l *disruption.GuardLookups, _ *disruption.GuardOptions) { l.Client = hold })
	s.show(x, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := g.Review(ctx, disruption.Disruption{
		Pod: web("web-000"), Operation: pub.Evict,
	}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write that is not answered in time: %v", err)
	}
	close(hold.open)
	if _, err := g.Review(t.Context(), disruption.Disruption{
		Pod: web("web-001"), Operation: pub.Evict,
	}); !apierrors.IsForbidden(err) {
		t.Errorf("a write that is refused: %v", err)
	}
	if status := s.read("a").Status; len(status.DisruptedPods) != 0 || status.UnavailableAllowed != 2 {
		t.Errorf("status %+v", status)
	}
}

// TestReviewPanics: a panic is the error of the reviews that wait, and the next review is decided.
func TestReviewPanics(t *testing.T) {
	s := newCluster(t)
	s.put("a", 2, nil)
	times := 0
	g, x := s.replica(func(_ *disruption.GuardLookups, o *disruption.GuardOptions) {
		o.Now = func() time.Time {
			if times++; times == 2 { // the first call is before the batch
				panic("no time")
			}
			return noon()
		}
	})
	s.show(x, "a")
	d := disruption.Disruption{Pod: web("web-000"), Operation: pub.Evict}
	if _, err := g.Review(t.Context(), d); err == nil || !strings.Contains(err.Error(), "panic: no time") ||
		strings.Contains(err.Error(), "goroutine") {
		t.Errorf("after a panic: %v", err)
	}
	if got, err := g.Review(t.Context(), d); err != nil || !got.Allowed {
		t.Errorf("after the error: %+v, %v", got.Verdict, err)
	}
}

// TestAsk: a workload gets its first pods, and the reason for the next one.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		why      string
		allowed  int32
		pods     func([]*corev1.Pod)
		admitted int
		writes   int
		reason   string
	}{
		"all": {why: "all pods fit with one write", allowed: 5, admitted: 5, writes: 1},
		"some": {
			why: "the first ones fit with one write", allowed: 2, admitted: 2, writes: 1, reason: "PodUnavailableBudget a: ",
		},
		"none": {why: "nothing is written where nothing fits", reason: "PodUnavailableBudget a: "},
		"unguarded": {
			why: "pods without a budget are admitted", admitted: 5, pods: func(all []*corev1.Pod) { relabel(all, "other") },
		},
		"mixed": {
			why:      "pods without a budget in between keep their place",
			allowed:  2,
			admitted: 3,
			writes:   2,
			reason:   "PodUnavailableBudget a: ",
			pods:     func(all []*corev1.Pod) { relabel(all[1:2], "other") },
		},
		"unavailable": {
			why: "pods that are unavailable already cost nothing", admitted: 5,
			pods: func(all []*corev1.Pod) {
				for _, pod := range all {
					pod.Status.Phase = corev1.PodPending
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			s.put("a", c.allowed, nil)
			var audit []disruption.Refusal
			g, x := s.replica(func(_ *disruption.GuardLookups, o *disruption.GuardOptions) {
				o.Recorder, o.Audit = s, func(e disruption.Refusal) { audit = append(audit, e) }
			})
			s.show(x, "a")
			pods := webs(5)
			for _, pod := range pods {
				pod.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", Controller: ptr.To(true),
				}}
			}
			if c.pods != nil {
				c.pods(pods)
			}
			err := g.Ask(t.Context(), pods)
			var refusal *workload.RefusedError
			admitted := len(pods)
			if errors.As(err, &refusal) {
				admitted = refusal.Admitted
			}
			if admitted != c.admitted || (refusal != nil) != (c.reason != "") || err != nil && refusal == nil {
				t.Fatalf("%s: %d admitted, %v", c.why, admitted, err)
			}
			if writes := s.codes(); len(writes) != c.writes {
				t.Errorf("%s: writes %q", c.why, writes)
			}
			if status := s.read("a").Status; len(status.DisruptedPods) > 0 ||
				len(status.UnavailablePods)+int(status.UnavailableAllowed) != int(c.allowed) {
				t.Errorf("%s: status %+v", c.why, status)
			}
			if refusal == nil {
				return
			}
			want := disruption.Refusal{
				Event: "PodUnavailableBudget", Kind: "CloneSet", Namespace: namespace, Name: "web", User: disruption.ManagerUser,
			}
			if len(audit) != 1 || audit[0] != want || len(s.Events(pods[admitted], "PubPreventPodDeletion")) != 1 {
				t.Errorf("%s: one refusal is reported as %+v", c.why, audit)
			}
		})
	}
}

func relabel(pods []*corev1.Pod, app string) {
	for _, pod := range pods {
		pod.Labels = map[string]string{"app": app}
	}
}
