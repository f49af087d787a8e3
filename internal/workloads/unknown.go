package workloads

import (
	"bytes"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// takeOver returns the write that records the unknown fields of the template at the update revision, where a controller
// stored the revision that lost these fields: it observed the spec as it is. Without the record, the fields would look
// like a change, and the takeover would recreate all pods.
func (o *Observation) takeOver(r *Revision) []*write.Write {
	text := r.Template.Annotations[revision.UnknownFieldsKey]
	if o.recorded != nil || text == "" || r.ObservedGeneration != o.Object.GetGeneration() {
		return o.recorded
	}
	for i, rev := range o.Revisions {
		if rev.Name != r.Update || rev.Annotations[revision.UnknownFieldsKey] != "" {
			continue
		}
		full := revision.Completed(rev, text)
		wanted, err := revision.Encode(r.Template)
		if err != nil || revision.SameData(rev.Data.Raw, wanted) || bytes.Equal(full.Data.Raw, rev.Data.Raw) ||
			!revision.SameData(full.Data.Raw, wanted) {
			return nil
		}
		o.Revisions[i] = full
		o.recorded = []*write.Write{write.JSON(rev, write.Main, append(write.TestUID(rev),
			write.SetAnnotations(rev, map[string]*string{revision.UnknownFieldsKey: &text})...)...)}
	}
	return o.recorded
}
