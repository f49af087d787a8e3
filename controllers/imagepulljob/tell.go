package imagepulljob

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// rounds of telling in one pass. A node that has the image already makes room for the next one at once.
	rounds = 32
	// refusals that a pass bears before it leaves the rest for later: it may be that all refuse.
	mostRefusals = 16
	// attempts at one NodeImage that others write at the same time.
	attempts = 5
)

// work is what one pass does.
type work struct {
	// secrets that nodes are told of.
	secrets []v1beta1.ReferenceObject
	// notes on secrets and refusals.
	notes []note.Note
	// refused are the nodes whose NodeImage the API server does not take.
	refused map[string]bool
	// unplaced is why the namespace of the copies takes none.
	unplaced error
	// again says that there is more to tell.
	again bool
}

// request is what the job asks of a node.
func (p *pass) request(node string) imagepull.Request {
	h := fnv.New32a()
	fmt.Fprint(h, p.job.UID, node)
	return imagepull.Request{Job: p.job, Secrets: p.secrets, Now: p.now, Random: h.Sum32(), KeepSeconds: p.options.KeepSeconds}
}

func (p *pass) review() (imagepull.JobPlan, error) { return p.request("").Review(p.nodes) }

// tellNodes tells as many nodes as may pull at once. One whose NodeImage is refused does not hold up those after it.
func (p *pass) tellNodes(ctx context.Context) error {
	p.refused = map[string]bool{}
	var refusals error
	for range rounds {
		plan, err := p.review()
		if err != nil {
			return err
		}
		next := slices.DeleteFunc(plan.Tell, func(name string) bool { return p.refused[name] })
		if len(next) == 0 || len(p.refused) > mostRefusals {
			return refusals
		}
		refused, err := p.tellAll(ctx, next)
		if refusals == nil {
			refusals = refused
		}
		if err != nil {
			return errors.Join(refusals, err)
		}
	}
	p.again = true
	return refusals
}

// outcome is what became of a NodeImage: as it is now, nil where there is none any more.
type outcome struct {
	node    *v1beta1.NodeImage
	refusal error
}

// tellAll tells some nodes, and takes up what became of their NodeImages.
func (p *pass) tellAll(ctx context.Context, names []string) (refusal, err error) {
	byName := make(map[string]*v1beta1.NodeImage, len(p.nodes))
	for _, n := range p.nodes {
		byName[n.Name] = n
	}
	var mu sync.Mutex
	outcomes := make(map[string]outcome, len(names))
	_, err = batches.Run(names, func(name string) error {
		node, err := p.tell(ctx, byName[name])
		o := outcome{node: node}
		if isFinal(err) {
			o.refusal, err = err, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			outcomes[name] = o
		}
		return err
	})
	return p.follow(outcomes), err
}

// follow replaces the nodes by what became of them. Those that refuse come last, for the others not to
// wait for them, and one refusal stands for all.
func (p *pass) follow(outcomes map[string]outcome) (refusal error) {
	var nodes, last []*v1beta1.NodeImage
	for _, n := range p.nodes {
		switch o, met := outcomes[n.Name]; {
		case met && o.refusal != nil:
			p.refused[n.Name] = true
			text := "the NodeImage takes no change: " + o.refusal.Error()
			p.notes = append(p.notes, note.Note{Code: noteRefused, Object: n.Name, Text: text})
			refusal = o.refusal
			last = append(last, n)
		case met && o.node == nil: // it is gone
		case met:
			nodes = append(nodes, o.node)
		case p.refused[n.Name]:
			last = append(last, n)
		default:
			nodes = append(nodes, n)
		}
	}
	p.nodes = append(nodes, last...)
	return refusal
}

// tell writes what a node is asked for, and gives the NodeImage as it then is. After a conflict it is read anew, past the
// cache.
func (p *pass) tell(ctx context.Context, node *v1beta1.NodeImage) (*v1beta1.NodeImage, error) {
	turn := p.turns.of(node.Name)
	turn.Lock()
	defer turn.Unlock()
	// Another job may have told it while this one waited for its turn.
	cached, err := p.nodeNamed(ctx, node.Name)
	if err != nil || cached == nil {
		return nil, err
	}
	known, _, err := p.nodeWrites.Overlay(ctx, client.ObjectKey{Name: node.Name}, []*v1beta1.NodeImage{cached})
	if err != nil || len(known) == 0 {
		return nil, err
	}
	node = known[0]
	for attempt := 0; ; attempt++ {
		changed, err := p.request(node.Name).Tell(node)
		if changed == nil || err != nil {
			if errors.Is(err, imagepull.ErrFull) {
				return node, nil // the next review says so
			}
			return node, err
		}
		err = p.client.Patch(ctx, changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			p.nodeWrites.Patched(client.ObjectKey{Name: node.Name}, changed)
			return changed, nil
		case apierrors.IsNotFound(err):
			return nil, nil
		case !apierrors.IsConflict(err) || attempt == attempts:
			return node, fmt.Errorf("tell node %s: %w", node.Name, err)
		}
		fresh := &v1beta1.NodeImage{}
		if err := p.options.Live.Get(ctx, client.ObjectKeyFromObject(node), fresh); apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return node, fmt.Errorf("read NodeImage %s past the cache: %w", node.Name, err)
		}
		node = fresh
	}
}

// turns are for jobs that tell the same node at the same time: without them all but one would have to begin again.
type turns [64]sync.Mutex

func (t *turns) of(node string) *sync.Mutex {
	h := fnv.New32a()
	fmt.Fprint(h, node)
	return &t[h.Sum32()%uint32(len(t))]
}

// isFinal says that the API server will not think better of it.
func isFinal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
