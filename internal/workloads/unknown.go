package workloads

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// WithUnknownFields returns the revisions with the unknown fields that their annotations have in their data.
func WithUnknownFields(revisions []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	for i, rev := range revisions {
		if text := rev.Annotations[revision.UnknownFieldsKey]; text != "" {
			revisions[i] = completed(rev, text)
		}
	}
	return revisions
}

// completed returns a revision with unknown fields in its data; the same revision where its data cannot be read.
func completed(rev *appsv1.ControllerRevision, unknown string) *appsv1.ControllerRevision {
	template, err := revision.Decode(rev.Data.Raw)
	if err != nil || revision.HasUnknownFields(template) {
		return rev
	}
	template.Annotations = maps.Clone(template.Annotations)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[revision.UnknownFieldsKey] = unknown
	data, err := revision.Encode(template)
	if err != nil {
		return rev
	}
	full := *rev
	full.Data.Raw = data
	return &full
}

// takeOver returns the write that records the unknown fields of the template at the update revision, where a controller
// stored the revision that lost these fields: it observed the spec as it is. Without the record, the fields would look
// like a change, and the takeover would recreate all pods.
func (o *Observation) takeOver(r *Revision) []write.Write {
	text := r.Template.Annotations[revision.UnknownFieldsKey]
	if text == "" || r.ObservedGeneration != o.Object.GetGeneration() {
		return nil
	}
	for i, rev := range o.Revisions {
		if rev.Name != r.Update || rev.Annotations[revision.UnknownFieldsKey] != "" {
			continue
		}
		full := completed(rev, text)
		wanted, err := revision.Encode(r.Template)
		if err != nil || full == rev || !revision.SameData(full.Data.Raw, wanted) {
			return nil
		}
		o.Revisions[i] = full
		return []write.Write{*write.JSON(rev, write.Main, append(write.TestUID(rev),
			write.SetAnnotations(rev, map[string]*string{revision.UnknownFieldsKey: &text})...)...)}
	}
	return nil
}
