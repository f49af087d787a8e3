package imagepull

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// ListPlan is what to do about a job for a list of images.
type ListPlan struct {
	// Hash of the template, the value of the label controller-revision-hash of the job.
	Hash string
	// Status of the job.
	Status v1beta1.ImageListPullJobStatus
	// Create are the jobs to create, in the order of the images.
	Create []*v1beta1.ImagePullJob
	// DeleteJobs are the jobs to delete after that, by name.
	DeleteJobs []*v1beta1.ImagePullJob
	// Delete says that the list has been finished for long enough. Nothing else is to be done then.
	Delete bool
	// RequeueAfter is when to look again, if not before. Zero is when something changes.
	RequeueAfter time.Duration
	// Notes report which jobs are replaced, and which images are not pulled.
	Notes []note.Note
}

// TemplateHash is by what a list knows which of its jobs have its template. It is the hash that OpenKruise writes, so
// that its jobs are taken over as they are.
func TemplateHash(t v1beta1.ImagePullJobTemplate) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dump.ForHash(t)))
	return revision.EncodeSafely(h.Sum32())
}

// List says how far a list is, and which jobs it needs. Of the jobs given only those count that the list owns and that
// are not being deleted; one an image, the oldest with the template of the list. Others are deleted. A list that has
// ended stays as it is, until it is deleted.
func List(list *v1beta1.ImageListPullJob, jobs []*v1beta1.ImagePullJob, now time.Time) ListPlan {
	plan := ListPlan{Hash: TemplateHash(list.Spec.ImagePullJobTemplate)}
	if list.Status.CompletionTime != nil {
		plan.Status = *list.Status.DeepCopy()
		left, limited := expires(list.Status.CompletionTime, list.Spec.CompletionPolicy.TTLSecondsAfterFinished, now)
		if plan.Delete = limited && left <= 0; !plan.Delete {
			plan.RequeueAfter = left
		}
		return plan
	}
	chosen := plan.choose(list, jobs)
	plan.Status = summarise(list, chosen, now)
	for _, image := range distinct(list.Spec.Images) {
		if chosen[image] != nil {
			continue
		}
		if _, err := Parse(image); err != nil {
			plan.note(NoteBadImage, image, fmt.Sprintf("spec.images[%d]: %v", slices.Index(list.Spec.Images, image), err))
			continue
		}
		plan.Create = append(plan.Create, jobOf(list, image, plan.Hash))
	}
	return plan
}

// choose picks the job of each image. The rest goes.
func (p *ListPlan) choose(
	list *v1beta1.ImageListPullJob, jobs []*v1beta1.ImagePullJob,
) map[string]*v1beta1.ImagePullJob {
	owned := slices.DeleteFunc(slices.Clone(jobs), func(j *v1beta1.ImagePullJob) bool {
		return j.DeletionTimestamp != nil || !slices.ContainsFunc(j.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == list.UID
		})
	})
	slices.SortFunc(owned, func(a, b *v1beta1.ImagePullJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	chosen := map[string]*v1beta1.ImagePullJob{}
	for _, j := range owned {
		var why string
		switch image := j.Spec.Image; {
		case !slices.Contains(list.Spec.Images, image):
			why = "its image is no longer listed"
		case !p.current(list, j):
			why = "the template has changed"
		case chosen[image] != nil:
			why = "another job pulls its image"
		default:
			chosen[image] = j
			continue
		}
		p.DeleteJobs = append(p.DeleteJobs, j)
		p.note(NoteReplaced, j.Name, why)
	}
	slices.SortFunc(p.DeleteJobs, func(a, b *v1beta1.ImagePullJob) int { return strings.Compare(a.Name, b.Name) })
	return chosen
}

// current says whether a job has the template of its list. Old releases gave it no hash, and the webhook filled in a
// policy.
func (p *ListPlan) current(list *v1beta1.ImageListPullJob, j *v1beta1.ImagePullJob) bool {
	if hash, ok := j.Labels[kruise.PodRevisionLabelKey]; ok {
		return hash == p.Hash
	}
	want, have := list.DeepCopy(), j.DeepCopy()
	want.Default()
	have.Default()
	want.Spec.ImagePullPolicy = cmp.Or(want.Spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
	return apiequality.Semantic.DeepEqual(want.Spec.ImagePullJobTemplate, have.Spec.ImagePullJobTemplate)
}

// summarise counts what the jobs of the images did. One that has not started did nothing.
func summarise(
	list *v1beta1.ImageListPullJob, chosen map[string]*v1beta1.ImagePullJob, now time.Time,
) v1beta1.ImageListPullJobStatus {
	s := v1beta1.ImageListPullJobStatus{StartTime: list.Status.StartTime.DeepCopy(), Desired: int32(len(list.Spec.Images))}
	if s.StartTime == nil {
		s.StartTime = ptr.To(metav1.NewTime(now))
	}
	for _, image := range list.Spec.Images {
		j := chosen[image]
		if j == nil || j.Status.StartTime == nil {
			continue
		}
		if j.Status.Active > 0 {
			s.Active++
		}
		if j.Status.Desired == j.Status.Failed+j.Status.Succeeded {
			s.Completed++
		}
		if j.Status.Desired == j.Status.Succeeded {
			s.Succeeded++
		}
		if j.Status.Failed > 0 {
			s.FailedImageStatuses = append(s.FailedImageStatuses, &v1beta1.FailedImageStatus{
				ImagePullJob: j.Name,
				Name:         image,
				Message:      fmt.Sprintf("status.failedNodes of ImagePullJob %s names the nodes", j.Name),
			})
		}
	}
	if list.Spec.CompletionPolicy.Type != v1beta1.Never && s.Completed == s.Desired {
		s.CompletionTime = ptr.To(metav1.NewTime(now))
	}
	return s
}

// jobOf returns the job of an image.
func jobOf(list *v1beta1.ImageListPullJob, image, hash string) *v1beta1.ImagePullJob {
	return &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: list.Namespace, GenerateName: list.Name + "-",
			Labels: map[string]string{kruise.PodRevisionLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(list, v1beta1.GroupVersion.WithKind("ImageListPullJob")),
			},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: image, ImagePullJobTemplate: *list.Spec.ImagePullJobTemplate.DeepCopy()},
	}
}

func distinct(all []string) []string {
	var found []string
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			seen[s] = true
			found = append(found, s)
		}
	}
	return found
}

func (p *ListPlan) note(code, object, text string) {
	p.Notes = append(p.Notes, newNote(code, object, text))
}
