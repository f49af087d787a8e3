package rollout_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// What API servers answer.
func forbidden() error { return apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("no")) }
func missing() error   { return apierrors.NewNotFound(corev1.Resource("pods"), "a") }
func webhook() error   { return apierrors.NewInternalError(errors.New("a webhook fails")) }
func untested() error { // a test of a JSON patch
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request",
	}}
}

// server answers the changes of a pass.
type server struct {
	pass *rollout.Pass
	// answers by the name of a pod, each once.
	answers map[string][]error
	sent    []string
}

func (s *server) run() {
	for changes := s.pass.Next(); len(changes) > 0; changes = s.pass.Next() {
		for len(changes) > 0 {
			c := changes[0]
			s.sent = append(s.sent, string(c.Action)+" "+c.Pod.Name)
			var next []*rollout.Change
			if all := s.answers[c.Pod.Name]; len(all) > 0 && all[0] != nil {
				next = s.pass.Answer(noon(), c, nil, all[0])
			} else {
				next = s.pass.Answer(noon(), c, applied(c), nil)
			}
			if all := s.answers[c.Pod.Name]; len(all) > 0 {
				s.answers[c.Pod.Name] = all[1:]
			}
			changes = append(next, changes[1:]...)
		}
	}
}

// TestPass: what follows from answers is decided by the pass.
func TestPass(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("1"))
	const first, second, third = "pod-0000", "pod-0001", "pod-0002"
	cases := map[string]struct {
		why     string
		changes []setChange
		answers map[string][]error
		sent    []string
		held    int
		after   time.Duration
		failed  string
		blocked int
	}{
		"an update": {
			why:  "its condition follows, and the budget is used up",
			sent: []string{"Update " + first, "Mark " + first},
		},
		"an update that is refused": {
			why:     "the next pass gives the turn to another pod, and the refused one gets it back after a pause",
			answers: map[string][]error{first: {forbidden()}},
			sent:    []string{"Update " + first},
			held:    1,
			after:   100 * time.Millisecond,
			failed:  `update pod default/pod-0000: pods "a" is forbidden: no`,
		},
		"an update that a failing webhook answers": {
			why:     "the webhook may fail for this pod alone, but that is no refusal to report",
			answers: map[string][]error{first: {webhook()}},
			sent:    []string{"Update " + first},
			held:    1,
			after:   100 * time.Millisecond,
		},
		"no answer": {
			why:     "the error returns to the queue; nothing is known of other pods",
			answers: map[string][]error{first: {errors.New("connection reset")}},
			sent:    []string{"Update " + first},
		},
		"an outdated update": {
			why: "the next pass observes the pod", answers: map[string][]error{first: {untested()}},
			sent: []string{"Update " + first}, after: time.Second,
		},
		"an update of a deleted pod": {
			why: "its deletion is an event", answers: map[string][]error{first: {missing()}},
			sent: []string{"Update " + first},
		},
		"an outdated condition": {
			why:     "no failure, no read, no event: the next pass looks again",
			answers: map[string][]error{first: {nil, untested()}},
			sent:    []string{"Update " + first, "Mark " + first},
			after:   time.Second,
		},
		"a refused condition": {
			why:     "the update is made",
			answers: map[string][]error{first: {nil, forbidden()}},
			sent:    []string{"Update " + first, "Mark " + first},
			failed:  `write condition of pod default/pod-0000: pods "a" is forbidden: no`,
		},
		"pods that cannot be updated": {
			why:     "those are counted whose condition was written",
			changes: []setChange{env},
			answers: map[string][]error{second: {untested()}},
			sent:    []string{"Mark " + first, "Mark " + second, "Mark " + third},
			blocked: 2,
			after:   time.Second,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(edited(before, append([]setChange{image("mesh:2")}, c.changes...)...), fleet(before, before, 3, 0, 0)...)
			pass, err := rollout.Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			s := server{pass: pass, answers: c.answers}
			s.run()
			if diff := cmp.Diff(c.sent, s.sent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if len(pass.Held()) != c.held || pass.RequeueAfter() != c.after || pass.Blocked() != c.blocked {
				t.Errorf("%s: %d held, again after %s, %d blocked",
					c.why, len(pass.Held()), pass.RequeueAfter(), pass.Blocked())
			}
			outdated := c.held == 0 && c.failed == "" && name != "no answer"
			if got := pass.Failures(); got != c.failed || (pass.Err() == nil) != outdated {
				t.Errorf("%s: reports %q, returns %v", c.why, got, pass.Err())
			}
			if pass.Next() != nil || len(in.Held) != 0 {
				t.Error("the pass does not end, or its input was changed")
			}
		})
	}
}

// TestHeld: a refused pod gets its turn back after the pause.
func TestHeld(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("1"))
	in := input(edited(before, image("mesh:2")), fleet(before, before, 3, 0, 0)...)
	pass, err := rollout.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	refused := pass.Next()[0]
	pass.Answer(in.Now, refused, nil, forbidden())
	in.Held = pass.Held()
	if pass, err = rollout.Plan(in); err != nil {
		t.Fatal(err)
	}
	held := updated(pass.Result())
	if len(held) != 1 || held[0] == refused.Pod.Name || pass.RequeueAfter() != rollout.RefusalPause ||
		!slices.Contains(codes(pass.Notes()), rollout.NoteRefused) {
		t.Errorf("updated %v, again after %s, noted %v", held, pass.RequeueAfter(), pass.Notes())
	}
	in.Now = in.Now.Add(rollout.RefusalPause)
	if later := compute(t, in); !slices.Equal(updated(later), []string{refused.Pod.Name}) || later.RequeueAfter != 0 {
		t.Errorf("after the pause: %v, %s", updated(later), later.RequeueAfter)
	}
}

func TestFailures(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("100%"))
	cases := map[string]struct {
		why    string
		pod    func(*corev1.Pod)
		err    error
		want   string
		prefix bool
	}{
		"none": {"nothing is reported", nil, nil, "", false},
		"an unreadable pod": {
			why:    "the pod and the reason",
			pod:    func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetHashKey] = `{"s":[]}` },
			want:   "pod default/pod-0000: read annotation",
			prefix: true,
		},
		"a refused write": {
			why: "the pod and the reason", err: forbidden(), want: `update pod default/pod-0001: pods "a" is forbidden: no`,
		},
		"a server that fails": {"that is not about the pod", nil, errors.New("connection reset"), "", false},
		"several": {
			why:    "the first one in their order, and how many more",
			pod:    func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetHashKey] = `{"s":[]}` },
			err:    forbidden(),
			want:   " (and 1 more)",
			prefix: true,
		},
		"a long one": {
			why:    "an event has a bound",
			err:    apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New(strings.Repeat("é", 900))),
			want:   strings.Repeat("é", 400),
			prefix: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pods := fleet(before, before, 2, 0, 0)
			if c.pod != nil {
				c.pod(pods[0])
			}
			pass, _ := rollout.Plan(input(edited(before, image("mesh:2")), pods...))
			for _, change := range pass.Next() {
				if change.Pod.Name == "pod-0001" && c.err != nil {
					pass.Answer(noon(), change, nil, c.err)
				}
			}
			if got := pass.Failures(); got != c.want && (!c.prefix || !strings.Contains(got, c.want)) || len(got) > 1000 {
				t.Errorf("%s: got %q", c.why, got)
			}
		})
	}
}
