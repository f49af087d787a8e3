package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/operate"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// action is a request to change a workload.
type action struct {
	Verb      string `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID of the workload that the page shows.
	UID string `json:"uid"`
	// Revision to go back to.
	Revision int64 `json:"revision"`
}

// act changes a workload, as the commands do.
func (s *server) act(w http.ResponseWriter, r *http.Request) {
	if !s.about.Write {
		refuse(w, http.StatusForbidden, errors.New("the dashboard is read-only: begin it with --write"))
		return
	}
	var a action
	if err := decodeBody(w, r, &a); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	named := ref{kind: a.Kind, namespace: a.Namespace, name: a.Name}
	if err := named.check(s.cluster.namespace); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	done, err := a.run(s.command(r.Context())) //nolint:contextcheck // the command carries it
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	answer(w, map[string]string{"done": done})
}

// run changes the workload, and returns what has been done.
func (a action) run(c target.Command) (string, error) {
	o, err := c.Get(kindNamed(a.Kind), a.Namespace, a.Name)
	if err != nil {
		return "", err
	}
	if string(o.GetUID()) != a.UID {
		return "", fmt.Errorf("%s %s is another object than the one that the page shows", a.Kind, a.Name)
	}
	ops, done, err := a.decide(c, o)
	if err != nil {
		return "", err
	}
	if len(ops) == 0 {
		return "nothing to do", nil
	}
	if _, err := c.Patch(o, ops, ""); err != nil {
		return "", err
	}
	return done, nil
}

// decide returns the patch of an action.
func (a action) decide(c target.Command, o target.Object) (ops []write.Op, done string, err error) {
	switch a.Verb {
	case "pause", "resume":
		ops, err = rollout.Pause(o.Unstructured, a.Verb == "pause")
		return ops, a.Verb + "d", err
	case "restart":
		ops, err = rollout.Restart(o.Unstructured, clock.RealClock{}.Now())
		return ops, "restarted", err
	case "undo":
		return a.undo(c, o)
	case "protect":
		ops, err = operate.Protect(o.Unstructured, kruise.DeletionProtectionTypeAlways)
		return ops, "protected", err
	case "unprotect":
		ops, err = operate.Protect(o.Unstructured, "")
		return ops, "unprotected", err
	default:
		return nil, "", fmt.Errorf("there is no action %q", a.Verb)
	}
}

// undo returns the patch that takes a workload back.
func (a action) undo(c target.Command, o target.Object) (ops []write.Op, done string, err error) {
	if o.GetKind() == kinds.Deployment {
		sets, err := rollout.ReplicaSets(c, o)
		if err != nil {
			return nil, "", err
		}
		_, ops, err = rollout.UndoDeployment(o.Unstructured, sets, a.Revision)
		return ops, "rolled back", err
	}
	stored, err := rollout.Revisions(c, o)
	if err != nil {
		return nil, "", err
	}
	to, ops, err := rollout.Undo(o.Unstructured, stored, a.Revision)
	if err != nil {
		return nil, "", err
	}
	return ops, fmt.Sprintf("rolled back to revision %d", to.Revision), nil
}

// storedRevision is a revision that a workload can go back to.
type storedRevision struct {
	Number  int64  `json:"number"`
	Name    string `json:"name"`
	Created int64  `json:"created"`
	Cause   string `json:"cause,omitempty"`
}

// revisions lists those that a workload can go back to, the newest first.
func (s *server) revisions(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	named := ref{kind: query.Get("kind"), namespace: query.Get("namespace"), name: query.Get("name")}
	if err := named.check(s.cluster.namespace); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	c := s.command(r.Context())
	o, err := c.Get(kindNamed(named.kind), named.namespace, named.name)
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	stored, err := rollout.Revisions(c, o) //nolint:contextcheck // the command carries it
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	all := make([]storedRevision, 0, len(stored))
	for _, one := range slices.Backward(stored) {
		all = append(all, storedRevision{
			Number: one.Revision, Name: one.Name, Created: seconds(&one.CreationTimestamp),
			Cause: short(one.Annotations["kubernetes.io/change-cause"]),
		})
	}
	answer(w, map[string]any{"revisions": all})
}
