package workload

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// changes are the differences between the templates of two revisions. Each is computed once in a pass.
type changes struct {
	in      *Input
	known   map[changeKey]change
	decoded map[string]map[string]*corev1.PodTemplateSpec
}

func newChanges(in *Input) changes {
	return changes{in, map[changeKey]change{}, map[string]map[string]*corev1.PodTemplateSpec{}}
}

type changeKey struct{ from, to, role string }

type change struct {
	change  *inplace.Change
	blocked error
}

// of returns the change from the revision in a pod's label to another one, or why it is not possible in place.
func (c *changes) of(label string, to *Revision, role string) (*inplace.Change, error) {
	key := changeKey{revision.Short(label), to.Name, role}
	if known, ok := c.known[key]; ok {
		return known.change, known.blocked
	}
	made := change{}
	made.change, made.blocked = c.diff(label, to, role)
	c.known[key] = made
	return made.change, made.blocked
}

func (c *changes) diff(label string, to *Revision, role string) (*inplace.Change, error) {
	from := c.in.revision(label)
	if from == nil {
		return nil, fmt.Errorf("the revision %q of the pod is not stored any more", label)
	}
	if to.Data == nil {
		return nil, fmt.Errorf("the revision %s is not stored", to.Name)
	}
	if from.Fixed != "" && to.Fixed != "" && from.Fixed != to.Fixed {
		return nil, errors.New("the revisions differ in what no running pod can change, as volume claim templates")
	}
	before, err := c.template(from, role)
	if err != nil {
		return nil, err
	}
	after, err := c.template(to, role)
	if err != nil {
		return nil, err
	}
	return inplace.Diff(before, after, c.in.Policy)
}

// template decodes a template of a revision, once in a pass.
func (c *changes) template(r *Revision, role string) (*corev1.PodTemplateSpec, error) {
	if c.decoded[r.Name] == nil {
		roles, err := c.in.Layout.Decode(r.Data)
		if err != nil {
			return nil, fmt.Errorf("revision %s: %w", r.Name, err)
		}
		c.decoded[r.Name] = roles
	}
	template := c.decoded[r.Name][role]
	if template == nil {
		return nil, fmt.Errorf("revision %s has no template %q", r.Name, role)
	}
	return template, nil
}

// revision finds a revision with data by its name or hash.
func (in *Input) revision(label string) *Revision {
	for _, r := range []*Revision{&in.Update, &in.Current} {
		if r.Data != nil && r.matches(label) {
			return r
		}
	}
	for i := range in.Revisions {
		if r := &in.Revisions[i]; r.Data != nil && r.matches(label) {
			return r
		}
	}
	return nil
}
