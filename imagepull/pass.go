package imagepull

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// maxRounds of writes in one pass. A node that has the image already makes room for the next one at once.
	maxRounds = 32
	// maxRefusals that a pass bears before it leaves the other nodes for later: the API server may refuse all of them.
	maxRefusals = 16
)

// For is the request to one node: each has another random number, so that the tags of a job do not all leave at once.
func (r Request) For(node string) Request {
	h := fnv.New32a()
	fmt.Fprint(h, r.Job.UID, node)
	r.Random = h.Sum32()
	return r
}

// Pass is one pass of a job over its nodes, without any I/O: which NodeImages to change next, and what follows from the
// answers. It ends when Next returns none.
//
//	for {
//		names, err := pass.Next()
//		if err != nil || len(names) == 0 {
//			break
//		}
//		pass.Answer(outcomes) // of updating each with Request.For(name).Apply
//	}
//	plan, err := pass.Conclude()
type Pass struct {
	// Request of the job.
	Request Request
	// Nodes that the job selects, in the order in which they pull.
	Nodes []*v1beta1.NodeImage
	// unplaced is the namespace that takes no copies of pull secrets.
	unplaced string
	rounds   int
	more     bool
	refused  map[string]bool
	notes    []note.Note
}

// RefuseSecrets notes that a namespace takes no copies of pull secrets, and why.
func (p *Pass) RefuseSecrets(namespace string, why error) {
	p.unplaced = namespace
	p.notes = append(p.notes, newNote(NoteUnplaced, namespace, why.Error()))
}

// Outcome is what became of one NodeImage.
type Outcome struct {
	// Node as it is now; nil where it does not exist any more.
	Node *v1beta1.NodeImage
	// Refusal is why the API server does not take the change; nil where it does.
	Refusal error
}

// Next names the nodes to change now. A node whose NodeImage is refused does not hold up those after it.
func (p *Pass) Next() ([]string, error) {
	plan, err := p.Request.Review(p.Nodes)
	if err != nil {
		return nil, err
	}
	next := slices.DeleteFunc(plan.Update, func(name string) bool { return p.refused[name] })
	if len(next) == 0 || len(p.refused) > maxRefusals {
		return nil, nil
	}
	if p.rounds == maxRounds {
		p.more = true
		return nil, nil
	}
	p.rounds++
	return next, nil
}

// Answer takes in what became of NodeImages, by node. Nodes that refuse come last, so that the others do not wait for
// them. It returns one refusal, which stands for all.
func (p *Pass) Answer(outcomes map[string]Outcome) (refusal error) {
	if p.refused == nil {
		p.refused = map[string]bool{}
	}
	var nodes, last []*v1beta1.NodeImage
	for _, n := range p.Nodes {
		switch o, answered := outcomes[n.Name]; {
		case answered && o.Refusal != nil:
			p.refused[n.Name] = true
			p.notes = append(p.notes, newNote(NoteRefused, n.Name, "the NodeImage takes no change: "+o.Refusal.Error()))
			refusal = o.Refusal
			last = append(last, n)
		case answered && o.Node == nil: // it is gone
		case answered:
			nodes = append(nodes, o.Node)
		case p.refused[n.Name]:
			last = append(last, n)
		default:
			nodes = append(nodes, n)
		}
	}
	p.Nodes = append(nodes, last...)
	return refusal
}

// Conclude returns the status, the notes, and when to look again, after the last answer.
func (p *Pass) Conclude() (JobPlan, error) {
	plan, err := p.Request.Review(p.Nodes)
	if err != nil {
		return plan, err
	}
	if plan.Status.CompletionTime == nil && len(p.refused) > 0 {
		plan.Status.Message += fmt.Sprintf(", NodeImages that take no change: %d", len(p.refused))
	}
	if plan.Status.CompletionTime == nil && p.unplaced != "" {
		plan.Status.Message += fmt.Sprintf(", pull secrets cannot be copied to namespace %s", p.unplaced)
	}
	if p.more {
		plan.RequeueAfter = time.Millisecond
	}
	plan.Notes = append(p.notes, plan.Notes...)
	return plan, nil
}

// newborn is the age at which the word of a job that selects no node is taken. Until then, nodes and pods from before
// it may still be missing in their caches, and a job that has ended does not look again.
const newborn = 2 * time.Second

// Wait is how long to wait for the nodes that a job selects, which has found none yet.
func (p *Pass) Wait() time.Duration {
	job := p.Request.Job
	age := p.Request.Now.Sub(job.CreationTimestamp.Time)
	if len(p.Nodes) > 0 || job.Status.StartTime != nil || age < -newborn { // or clocks differ
		return 0
	}
	return min(newborn-age, newborn)
}
