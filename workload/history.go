package workload

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// SetRevisions sets the revisions of the input: those that revision.Resolve found, of which newest is the one that
// Resolution.Write returned, and the stored ones.
func (in *Input) SetRevisions(r revision.Resolution, newest *appsv1.ControllerRevision, stored []*appsv1.ControllerRevision) {
	of := func(r *appsv1.ControllerRevision) Revision { return Revision{Name: r.Name, Data: r.Data.Raw} }
	in.Update, in.Current = of(newest), of(cmp.Or(r.Current, newest))
	in.Revisions = nil
	for _, s := range stored {
		in.Revisions = append(in.Revisions, of(s))
	}
}

// Promote returns the current revision after the pass, and reports whether it is another one than current, the one of the status:
// see revision.Promote.
func (p *Pass) Promote(current string) (name string, promoted bool) {
	replicas, counts := p.in.Scale.Limits.Replicas, p.Counts()
	if p.in.Scale.Slots != nil {
		replicas = int32(len(p.in.Scale.Slots))
	}
	return revision.Promote(revision.Progress{
		Current: current, Update: p.in.Update.Name,
		Replicas: replicas * max(int32(len(p.in.Members)), 1), Existing: counts.Pods, Updated: counts.UpdatedPods,
	})
}

// Trim returns the writes that delete old revisions, so that at most limit are stored besides those that pods have and those
// that the pass goes from and to.
func (p *Pass) Trim(stored []*appsv1.ControllerRevision, limit int32) []*write.Write {
	live := []string{p.in.Update.Name, p.in.Current.Name}
	seen := map[string]bool{}
	for k := range p.in.Instances {
		for _, pod := range p.in.Instances[k].Pods {
			if pod.Pod == nil {
				continue
			}
			if label := pod.Labels[p.in.revisionLabel()]; !seen[label] {
				seen[label], live = true, append(live, label)
			}
		}
	}
	var writes []*write.Write
	for _, old := range revision.Trim(stored, live, limit) {
		writes = append(writes, &write.Write{Verb: write.Delete, Object: old})
	}
	return writes
}

// Template returns a copy of the pod template of a creation, in the revision and the role that it gets.
func (in *Input) Template(c Creation) (*corev1.PodTemplateSpec, error) {
	r := in.revision(c.Revision)
	if r == nil {
		return nil, fmt.Errorf("the revision %q is not stored", c.Revision)
	}
	roles, err := r.templates()
	if err != nil {
		return nil, err
	}
	return r.pick(roles, c.Member.Role)
}

// templates decodes the templates of a revision.
func (r *Revision) templates() (map[string]*corev1.PodTemplateSpec, error) {
	roles, err := revision.DecodeRoles(r.Data)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w", r.Name, err)
	}
	return roles, nil
}

// pick returns the template of a role.
func (r *Revision) pick(roles map[string]*corev1.PodTemplateSpec, role string) (*corev1.PodTemplateSpec, error) {
	if roles[role] == nil {
		return nil, fmt.Errorf("revision %s has no template %q", r.Name, role)
	}
	return roles[role], nil
}
