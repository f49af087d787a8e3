package scale_test

import (
	"math"
	"math/rand"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/scale"
)

func TestDiffer(t *testing.T) {
	cases := map[string]struct {
		old, updated scale.Count
		limits       scale.Limits
		want         scale.Difference
	}{
		"first: all at once": {
			scale.Count{},
			scale.Count{},
			scale.Limits{Replicas: 5, MaxUnavailable: 1},
			scale.Difference{Create: 5, CreateMissing: 5, Update: 0},
		},
		"to the partition: missing ones are old up to the partition": {
			scale.Count{Available: 1},
			scale.Count{Available: 1},
			scale.Limits{Replicas: 5, Partition: 3, MaxUnavailable: 1, NoRollback: true},
			scale.Difference{Create: 3, CreateMissing: 3, CreateOld: 2},
		},
		"too many: old ones go first, within what may be unavailable": {
			scale.Count{Available: 3},
			scale.Count{Available: 4},
			scale.Limits{Replicas: 5, MaxUnavailable: 1},
			scale.Difference{Delete: 2, DeleteOld: 3, DeleteAvailable: 3, Update: 1, UpdateUnavailable: 3},
		},
		"surge: new ones before old ones go": {
			scale.Count{Available: 5},
			scale.Count{},
			scale.Limits{Replicas: 5, MaxUnavailable: 0, MaxSurge: 2},
			scale.Difference{Create: 2, CreateMissing: 2, Update: 5, UpdateUnavailable: 0},
		},
		"surge is there: then the budget is the surplus": {
			scale.Count{Available: 5},
			scale.Count{Available: 2},
			scale.Limits{Replicas: 5, MaxUnavailable: 0, MaxSurge: 2},
			scale.Difference{Update: 3, UpdateUnavailable: 2},
		},
		"surge, all of it there: none goes while an updated one is missing": {
			scale.Count{Available: 4},
			scale.Count{Available: 9},
			scale.Limits{Replicas: 10, MaxSurge: 3},
			scale.Difference{Update: 1, UpdateUnavailable: 3},
		},
		"a doomed one with surge: is replaced before it goes": {
			scale.Count{},
			scale.Count{MarkedForDeletion: 1, Available: 4},
			scale.Limits{Replicas: 5, MaxUnavailable: 0, MaxSurge: 1},
			scale.Difference{Create: 1, CreateMissing: 1},
		},
		"a leaving one: takes a place": {
			scale.Count{},
			scale.Count{PreparingDelete: 1, Available: 4},
			scale.Limits{Replicas: 5, MaxUnavailable: 1},
			scale.Difference{},
		},
		"a leaving one, forgotten: takes none": {
			scale.Count{},
			scale.Count{PreparingDelete: 1, Available: 4},
			scale.Limits{Replicas: 5, MaxUnavailable: 1, ExcludePreparingDelete: true},
			scale.Difference{Create: 1, CreateMissing: 1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := scale.Differ(c.old, c.updated, c.limits)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDifferAgainstTheFormula compares with the formula, written down term by term.
func TestDifferAgainstTheFormula(t *testing.T) {
	for seed := range int64(20000) {
		random := rand.New(rand.NewSource(seed))
		n := func(most int32) int32 { return random.Int31n(most + 1) }
		side := func() scale.Count {
			return scale.Count{PreparingDelete: n(2), MarkedForDeletion: n(2), Unavailable: n(3), Available: n(8)}
		}
		l := scale.Limits{
			Replicas: n(15), MaxUnavailable: n(5), MaxSurge: n(1) * n(5),
			NoRollback: n(1) == 0, ExcludePreparingDelete: n(1) == 0,
		}
		l.Partition = n(l.Replicas)
		if n(1) == 0 {
			l.MaxUnavailableScaling = ptr.To(n(5))
		}
		old, updated := side(), side()
		if diff := cmp.Diff(formula(old, updated, l), scale.Differ(old, updated, l)); diff != "" {
			t.Fatalf("seed %d: old %+v, updated %+v, %+v (-formula +got):\n%s", seed, old, updated, l, diff)
		}
	}
}

func formula(old, updated scale.Count, l scale.Limits) scale.Difference {
	R, P, S, U, SU := l.Replicas, l.Partition, l.MaxSurge, l.MaxUnavailable, scalingOf(l)
	preOld, delOld, unOld := old.PreparingDelete, old.MarkedForDeletion, old.Unavailable
	preNew, delNew, unNew := updated.PreparingDelete, updated.MarkedForDeletion, updated.Unavailable
	actOld, actNew := old.MarkedForDeletion+old.Unavailable+old.Available,
		updated.MarkedForDeletion+updated.Unavailable+updated.Available
	N := preOld + actOld + preNew + actNew
	magnitude := func(x int32) int32 { return int32(math.Abs(float64(x))) }

	oldDiff, newDiff := actOld-P, actNew-(R-P)
	un, del := preNew+preOld+unNew+unOld, delNew+delOld
	if l.NoRollback {
		oldDiff, newDiff = max(oldDiff, 0), min(newDiff, 0)
	}
	var surge, surgeOld int32
	if S > 0 {
		var sSurge, uSurge, uOld int32
		if del > 0 {
			sSurge = min(max(un+del-U, 0), del)
		}
		sOld := max(sSurge-delNew, 0)
		if int64(oldDiff)*int64(newDiff) < 0 {
			uSurge = max(oldDiff, newDiff)
			if newDiff > 0 {
				uOld = uSurge
			}
		}
		if sSurge >= uSurge {
			surge = min(S, sSurge)
			surgeOld = min(surge, sOld)
		} else {
			surge = min(S, uSurge)
			surgeOld = min(surge, uOld)
		}
	}
	cur, curOld := N, actOld+preOld
	if l.ExcludePreparingDelete {
		cur, curOld = cur-preNew-preOld, curOld-preOld
	}
	T, TOld := R+surge, P+surgeOld
	d := scale.Difference{}
	if T-cur > 0 {
		d.CreateMissing = T - cur
		d.CreateOld = max(TOld-curOld, 0)
		d.Create = min(d.CreateMissing, max(SU-un, 0))
	}
	if cur-del-T > 0 {
		d.Delete = cur - del - T
		d.DeleteOld = max(curOld-delOld-TOld, 0)
	}
	if del > 0 || d.Delete > 0 {
		d.DeleteAvailable = max(U+(N-R)-un, 0)
	}
	if magnitude(oldDiff) <= magnitude(newDiff) {
		d.Update = oldDiff
	} else {
		d.Update = -newDiff
	}
	if d.Update != 0 {
		d.UpdateUnavailable = U + N - R
	}
	return d
}

// TestDifferLaws holds for any numbers that can be stored.
func TestDifferLaws(t *testing.T) {
	for seed := range int64(20000) {
		random := rand.New(rand.NewSource(seed))
		n := func(most int32) int32 { return random.Int31n(most + 1) }
		limits := []int32{0, 1, 5, math.MaxInt32}
		l := scale.Limits{
			Replicas: n(20), MaxUnavailable: limits[n(3)], MaxSurge: limits[n(3)], MaxUnavailableScaling: ptr.To(limits[n(3)]),
			NoRollback: n(1) == 0,
		}
		l.Partition = n(l.Replicas)
		old, updated := scale.Count{Unavailable: n(3), Available: n(9)}, scale.Count{Unavailable: n(3), Available: n(9)}
		d := scale.Differ(old, updated, l)
		all := old.Unavailable + old.Available + updated.Unavailable + updated.Available
		switch {
		case d.Create < 0 || d.Create > d.CreateMissing || d.Delete < 0 || d.DeleteAvailable < 0:
			t.Fatalf("seed %d: %+v makes no sense", seed, d)
		case int64(all)+int64(d.Create) > int64(l.Replicas)+int64(l.MaxSurge) && d.Create > 0:
			t.Fatalf("seed %d: creating %d crosses the surge", seed, d.Create)
		case d.Create > 0 && d.Delete > 0:
			t.Fatalf("seed %d: %+v creates and deletes", seed, d)
		case all-d.Delete < l.Replicas && d.Delete > 0:
			t.Fatalf("seed %d: deleting %d leaves too few", seed, d.Delete)
		case old == (scale.Count{Available: l.Partition}) && updated == (scale.Count{Available: l.Replicas - l.Partition}) &&
			d != (scale.Difference{}):
			t.Fatalf("seed %d: converged, and yet %+v", seed, d)
		}
	}
}

// scalingOf is the limit while scaling out; none where it is not given.
func scalingOf(l scale.Limits) int32 {
	if l.MaxUnavailableScaling == nil {
		return math.MaxInt32
	}
	return *l.MaxUnavailableScaling
}
