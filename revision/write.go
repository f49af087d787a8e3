package revision

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/write"
)

// Write returns the write that makes the wanted templates the newest revision, and the revision as that write leaves
// it. The write is nil where the newest revision holds the templates. The metadata is that of a revision that is
// created: its namespace, owner and labels; Write sets the name. Send the write before pods refer to the revision.
func (r *Resolution) Write(metadata metav1.ObjectMeta) (newest *appsv1.ControllerRevision, w *write.Write) {
	switch r.Verdict {
	case Create:
		newest = &appsv1.ControllerRevision{
			ObjectMeta: *metadata.DeepCopy(), Data: runtime.RawExtension{Raw: r.data}, Revision: r.Number,
		}
		newest.Name = r.Name
		return newest, &write.Write{Verb: write.Create, Object: newest}
	case Bump:
		newest = r.Update.DeepCopy()
		newest.Revision = r.Number
		ops := append(write.TestUID(r.Update), write.Test("/revision", r.Update.Revision),
			write.Replace("/revision", r.Number))
		return newest, write.JSON(r.Update, write.Main, ops...)
	case Use:
	}
	return r.Update, nil
}
