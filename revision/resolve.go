package revision

import (
	"bytes"
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Verdict is what to write so that the wanted template is the newest revision.
type Verdict string

const (
	// Use means nothing: the newest revision holds the template.
	Use Verdict = "Use"
	// Bump means to raise the number of an older revision that holds the template: the user rolled back.
	Bump Verdict = "Bump"
	// Create means to make a new revision.
	Create Verdict = "Create"
)

// Input is what Resolve looks at.
type Input struct {
	// Owner is the name of the workload; names of new revisions begin with it.
	Owner string
	// Data is the wanted template, from Encode, or the wanted templates, from EncodeRoles.
	Data []byte
	// Have are the stored revisions of the workload.
	Have []*appsv1.ControllerRevision
	// Current is the name of the revision that pods are updated from, as the status has it; empty at first.
	Current string
	// Collisions is the collision count of the status.
	Collisions *int32
	// Same reports whether two stored templates mean the same; nil for SameData. Data with templates at other places need
	// Layout.Same, and data that are no pod templates a function of their own.
	Same func(a, b []byte) bool
}

// Resolution is what Resolve found.
type Resolution struct {
	// Verdict is what to write.
	Verdict Verdict
	// Name and Hash of the update revision.
	Name, Hash string
	// Number that the update revision has, or is to have.
	Number int64
	// Update is the stored revision that holds the wanted template; nil when it is to be created.
	Update *appsv1.ControllerRevision
	// Current is the stored revision that pods are updated from; nil when that is the update revision to be
	// created. It is the update revision when the status names none, or one that is gone.
	Current *appsv1.ControllerRevision
	// Collisions is the collision count to write into the status. It is above the one that was given when
	// the names that went before are taken by other templates.
	Collisions *int32

	data []byte
	same func(a, b []byte) bool
}

// Resolve finds the wanted template among the stored revisions.
func Resolve(in Input) Resolution {
	have := slices.Clone(in.Have)
	Sort(have)
	if in.Same == nil {
		in.Same = SameData
	}
	r := Resolution{Collisions: in.Collisions, data: in.Data, same: in.Same}
	r.Update = find(have, in)
	if r.Update == nil {
		r.create(in, have)
	} else {
		r.use(have)
	}
	r.Current = r.Update
	for _, h := range have {
		if h.Name == in.Current {
			r.Current = h
		}
	}
	return r
}

// find gives the newest revision that holds data; one with the very bytes comes before one that means the same.
func find(sorted []*appsv1.ControllerRevision, in Input) *appsv1.ControllerRevision {
	for _, h := range slices.Backward(sorted) {
		if bytes.Equal(h.Data.Raw, in.Data) {
			return h
		}
	}
	for _, h := range slices.Backward(sorted) {
		if in.Same(h.Data.Raw, in.Data) {
			return h
		}
	}
	return nil
}

func (r *Resolution) use(sorted []*appsv1.ControllerRevision) {
	newest := sorted[len(sorted)-1]
	r.Name, r.Hash = r.Update.Name, Short(r.Update.Name)
	r.Verdict, r.Number = Use, r.Update.Revision
	if newest != r.Update {
		r.Verdict, r.Number = Bump, newest.Revision+1
	}
}

func (r *Resolution) create(in Input, sorted []*appsv1.ControllerRevision) {
	r.Verdict, r.Number = Create, 1
	if len(sorted) > 0 {
		r.Number = sorted[len(sorted)-1].Revision + 1
	}
	taken := make(map[string]bool, len(sorted))
	for _, h := range sorted {
		taken[h.Name] = true
	}
	count := ptr.Deref(in.Collisions, 0)
	r.Collisions = &count
	for {
		r.Hash = Hash(in.Data, &count)
		r.Name = Name(in.Owner, r.Hash)
		if !taken[r.Name] {
			return
		}
		count++
	}
}

// Sort orders revisions from the oldest to the newest: by number, then creation, then name.
func Sort(revisions []*appsv1.ControllerRevision) {
	slices.SortFunc(revisions, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(
			cmp.Compare(a.Revision, b.Revision),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// Trim gives the revisions to delete so that at most limit remain besides the live ones, the oldest first.
// A revision is live when one of the values names it, in full or by its hash: the revisions of the status and
// the labels controller-revision-hash of all pods. A negative limit is 0.
func Trim(have []*appsv1.ControllerRevision, live []string, limit int32) []*appsv1.ControllerRevision {
	inUse := make(map[string]bool, len(live))
	for _, value := range live {
		inUse[Short(value)] = true
	}
	dead := slices.DeleteFunc(slices.Clone(have), func(r *appsv1.ControllerRevision) bool { return inUse[Short(r.Name)] })
	Sort(dead)
	return dead[:max(0, len(dead)-int(max(0, limit)))]
}

// ControlledBy returns the objects of a list that an owner controls, as a pass needs them that lists by labels: labels
// select objects of other owners, too.
func ControlledBy[T any, P interface {
	*T
	metav1.Object
}](owner metav1.Object, items []T) []P {
	var controlled []P
	for i := range items {
		if object := P(&items[i]); metav1.IsControlledBy(object, owner) {
			controlled = append(controlled, object)
		}
	}
	return controlled
}
