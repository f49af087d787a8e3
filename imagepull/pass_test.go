package imagepull_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// fleet is n nodes that list nothing.
func fleet(n int) (nodes []*v1beta1.NodeImage) {
	for i := range n {
		nodes = append(nodes, nodeImage(fmt.Sprintf("node-%02d", i)))
	}
	return nodes
}

// execute drives a pass to its end. refuse says which nodes the API server refuses, gone which do not exist any more.
func execute(t *testing.T, p *imagepull.Pass, refuse, gone func(string) bool) (asked []string, plan imagepull.JobPlan) {
	t.Helper()
	for round := 0; ; round++ {
		names, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			break
		}
		if round > 100 {
			t.Fatal("the pass does not end")
		}
		outcomes := map[string]imagepull.Outcome{}
		for _, n := range p.Nodes {
			switch {
			case !slices.Contains(names, n.Name):
			case refuse(n.Name):
				outcomes[n.Name] = imagepull.Outcome{Refusal: errors.New("too large")}
			case gone(n.Name):
				outcomes[n.Name] = imagepull.Outcome{}
			default:
				changed, err := p.Request.For(n.Name).Apply(n)
				if err != nil {
					t.Fatal(err)
				}
				outcomes[n.Name] = imagepull.Outcome{Node: changed}
			}
		}
		asked = append(asked, names...)
		if refusal := p.Answer(outcomes); (refusal != nil) != slices.ContainsFunc(names, refuse) {
			t.Errorf("the refusal of %v is %v", names, refusal)
		}
	}
	plan, err := p.Conclude()
	if err != nil {
		t.Fatal(err)
	}
	return asked, plan
}

func none(string) bool { return false }

func TestPass(t *testing.T) {
	from := func(limit string) func(string) bool { return func(name string) bool { return name < limit } }
	cases := map[string]struct {
		nodes, parallel int32
		refuse, gone    func(string) bool
		unplaced        string
		asked           int
		active          int32
		message         string
		codes           []string
	}{
		"as many as pull at once": {5, 2, none, none, "", 2, 2, "progress 0.0%", []string{imagepull.NoteLimited}},
		"all at once":             {3, 9, none, none, "", 3, 3, "progress 0.0%", nil},
		"a refused node makes room": {
			nodes:    5,
			parallel: 2,
			refuse:   from("node-01"),
			gone:     none,
			asked:    3,
			active:   2,
			message:  "NodeImages that take no change: 1",
			codes:    []string{imagepull.NoteRefused, imagepull.NoteLimited},
		},
		"a node that is gone makes room": {
			nodes:    5,
			parallel: 2,
			refuse:   none,
			gone:     from("node-01"),
			asked:    3,
			active:   2,
			message:  "progress 0.0%",
			codes:    []string{imagepull.NoteLimited},
		},
		"all refuse: the rest is left": {60, 9, from("z"), none, "", 18, 0, "NodeImages that take no change: 18", nil},
		"the secrets have nowhere to be": {
			nodes:    2,
			parallel: 2,
			refuse:   none,
			gone:     none,
			unplaced: "secrets",
			asked:    2,
			active:   2,
			message:  "pull secrets cannot be copied to namespace secrets",
		},
		"it is paused": {2, 0, none, none, "", 0, 0, "progress 0.0%", []string{imagepull.NotePaused}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			job := pullJob("web", "nginx:1", parallel(c.parallel))
			p := &imagepull.Pass{Request: request(job), Nodes: fleet(int(c.nodes))}
			if c.unplaced != "" {
				p.RefuseSecrets(c.unplaced, errors.New("not found"))
			}
			asked, plan := execute(t, p, c.refuse, c.gone)
			if len(asked) != c.asked || plan.Status.Active != c.active || !strings.Contains(plan.Status.Message, c.message) {
				t.Errorf("asked %v, %d are active, %q", asked, plan.Status.Active, plan.Status.Message)
			}
			if len(slices.Compact(slices.Sorted(slices.Values(asked)))) != len(asked) {
				t.Errorf("a node was asked twice: %v", asked)
			}
			var codes []string
			for _, n := range plan.Notes {
				if !slices.Contains(codes, n.Code) {
					codes = append(codes, n.Code)
				}
			}
			if c.codes != nil && !slices.Equal(codes, c.codes) {
				t.Errorf("noted %v, want %v", codes, c.codes)
			}
		})
	}
}

// Nodes that refuse come last; a later pass of theirs is not held up by them.
func TestRefusedNodesComeLast(t *testing.T) {
	p := &imagepull.Pass{Request: request(pullJob("web", "nginx:1", parallel(1))), Nodes: fleet(3)}
	execute(t, p, func(name string) bool { return name == "node-00" }, none)
	if last := p.Nodes[len(p.Nodes)-1].Name; last != "node-00" || len(p.Nodes) != 3 {
		t.Errorf("the last of %d nodes is %s", len(p.Nodes), last)
	}
}

// Nodes that have the image already make room at once. A pass leaves the rest to the next one, at once.
func TestPassIsBounded(t *testing.T) {
	job := pullJob("web", "nginx:1", parallel(1), func(j *v1beta1.ImagePullJob) {
		j.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	})
	var nodes []*v1beta1.NodeImage
	for _, n := range fleet(100) {
		lists("nginx:1", 0, "other")(n)
		n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
			Tag: "1", Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: ago(time.Second),
		}}}}
		nodes = append(nodes, n)
	}
	p := &imagepull.Pass{Request: request(job), Nodes: nodes}
	asked, plan := execute(t, p, none, none)
	if len(asked) != 32 || plan.Status.Succeeded != 32 || plan.RequeueAfter != time.Millisecond {
		t.Errorf("asked %d nodes, %d have it, look again after %s", len(asked), plan.Status.Succeeded, plan.RequeueAfter)
	}
}

// The promise of the reconciler: in whatever order nodes end, the status changes once as the job begins, and at most
// once for each node that ends. Nodes that the job selects later cost one more each.
func TestStatusChanges(t *testing.T) {
	eachCase(t, 200, func(r *random) string {
		job := pullJob("web", "nginx:1", parallel(int32(1+r.Intn(4))))
		all := fleet(1 + r.Intn(8))
		selected := all[:1+r.Intn(len(all))]
		late, changes := len(all)-len(selected), 0
		for pass := 0; job.Status.CompletionTime == nil || len(selected) < len(all); pass++ {
			if pass > 50 {
				return "the job does not end"
			}
			p := &imagepull.Pass{Request: request(job), Nodes: selected}
			_, plan := execute(t, p, none, none)
			if jsonOf(plan.Status) != jsonOf(job.Status) {
				changes++
			}
			job.Status, selected = plan.Status, p.Nodes
			if job.Status.CompletionTime != nil {
				break
			}
			if len(selected) < len(all) && r.once(3) {
				selected = append(selected, all[len(selected)])
			}
			for i, n := range selected {
				if tags := n.Spec.Images["nginx"].Tags; len(tags) == 1 && len(n.Status.ImageStatuses) == 0 && r.once(2) {
					n = n.DeepCopy()
					n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
						Tag: "1", Version: tags[0].Version, Phase: pick(r, v1beta1.ImagePhaseSucceeded, v1beta1.ImagePhaseFailed),
					}}}}
					selected[i] = n
				}
			}
		}
		if most := 1 + len(selected) + late; changes > most {
			return fmt.Sprintf("%d changes of the status with %d nodes, of which %d came late", changes, len(selected), late)
		}
		return ""
	})
}

func TestWait(t *testing.T) {
	for name, c := range map[string]struct {
		age, want time.Duration
		change    func(*imagepull.Pass)
	}{
		"new":                  {500 * time.Millisecond, 1500 * time.Millisecond, func(*imagepull.Pass) {}},
		"old enough":           {3 * time.Second, -time.Second, func(*imagepull.Pass) {}},
		"it has nodes":         {0, 0, func(p *imagepull.Pass) { p.Nodes = fleet(1) }},
		"it has begun":         {0, 0, func(p *imagepull.Pass) { p.Request.Job.Status.StartTime = ago(0) }},
		"made a little later":  {-time.Second, 2 * time.Second, func(*imagepull.Pass) {}},
		"made in a far future": {-time.Hour, 0, func(*imagepull.Pass) {}},
	} {
		job := pullJob("web", "nginx:1")
		job.CreationTimestamp = metav1.NewTime(noon().Add(-c.age))
		p := &imagepull.Pass{Request: request(job)}
		p.Request.Now = noon()
		c.change(p)
		if got := p.Wait(); got != c.want {
			t.Errorf("%s: wait %s, want %s", name, got, c.want)
		}
	}
}
