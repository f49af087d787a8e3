package podscope

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// ground is the configurations as an API server has them, and a process that keeps them.
type ground struct {
	*testing.T
	snapshot

	planner planner
	state   state
	// version of the next write, and the writes so far.
	version, writes int
	// announced are the notes of the writes, and notes those of the last pass.
	announced, notes []note.Note
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{T: t, planner: planner{options: Options{}.withDefaults()}}
	g.now, g.main = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), named("main", served("ca"))
	g.pods = named(DefaultConfiguration)
	return g
}

// served is an entry of the service with a CA.
func served(ca string) entry {
	return entry{Name: "m.kb.io", ClientConfig: scope.Reach{
		Namespace: DefaultNamespace, Service: DefaultService, CABundle: []byte(ca),
	}.Client()}
}

func named(name string, all ...entry) *configuration {
	return &configuration{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Webhooks: all}
}

// want sets the conditions of the entries: of that which fails closed, and of the open one.
func (g *ground) want(closed, open string) *ground {
	var c scope.Contribution
	if closed != "" {
		c.Conditions = append(c.Conditions, scope.Condition{Expression: closed})
	}
	if open != "" {
		c.Conditions = append(c.Conditions, scope.Condition{Expression: open, Ignore: true})
	}
	g.contributions = []scope.Contribution{c}
	return g
}

// pass plans, and checks that the same snapshot gives the same plan.
func (g *ground) pass() pass {
	g.Helper()
	p, again := g.planner.next(g.snapshot, g.state), g.planner.next(g.snapshot, g.state)
	if fmt.Sprint(again.notes, again.requeueAfter) != fmt.Sprint(p.notes, p.requeueAfter) {
		g.Errorf("the same observation gives another pass: %v", again)
	}
	return p
}

// next makes one pass, and its write, which it returns; nil for none.
func (g *ground) next() *write.Write {
	g.Helper()
	p := g.pass()
	g.state, g.notes = p.state, p.notes
	if p.write == nil {
		return nil
	}
	g.state, g.announced = p.written, append(g.announced, p.announce...)
	g.writes++
	g.send(p.write)
	return p.write
}

// pause is how long the next pass wants to wait.
func (g *ground) pause() time.Duration {
	g.Helper()
	return max(g.pass().requeueAfter, time.Millisecond)
}

// settle makes passes until nothing is written.
func (g *ground) settle() *ground {
	g.Helper()
	for range 5 {
		if g.next() == nil && g.pass().planned {
			return g
		}
		g.now = g.now.Add(time.Second)
	}
	g.Fatal("the passes do not end")
	return g
}

// send does what an API server does with a write.
func (g *ground) send(w *write.Write) {
	g.Helper()
	into := &g.pods
	if w.Object.GetName() != DefaultConfiguration {
		into = &g.provisional
	}
	result := &configuration{}
	if w.Verb == write.Create {
		if *into != nil {
			g.Fatal("a configuration that exists is created")
		}
		w.Object.(*configuration).DeepCopyInto(result)
	} else if err := apply(w, *into, result); err != nil {
		g.Fatal(err)
	}
	g.version++
	result.ResourceVersion = fmt.Sprintf("w%d", g.version)
	*into = result
}

func apply(w *write.Write, before, result *configuration) error {
	data, err := w.Data()
	if err != nil {
		return err
	}
	decoded, err := evanphx.DecodePatch(data)
	if err != nil {
		return err
	}
	stored, err := json.Marshal(before)
	if err != nil {
		return err
	}
	after, err := decoded.Apply(stored)
	if err != nil {
		return fmt.Errorf("%w: %s", err, data)
	}
	return json.Unmarshal(after, result)
}

// edit is a write of another writer.
func (g *ground) edit(change func(*configuration)) {
	c := g.pods.DeepCopy()
	change(c)
	g.version++
	c.ResourceVersion = fmt.Sprintf("e%d", g.version)
	g.pods = c
}

func condition(name, expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: expression}
}
