package migrate_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/migrate"
)

func TestMove(t *testing.T) {
	type (
		moving = migrate.Moving
		action = migrate.Action
	)
	for name, row := range map[string]struct {
		now  moving
		want migrate.Action
	}{
		"the target grows first": {
			moving{Source: 3, FinalTarget: 3, Surge: 1}, action{Source: 3, Target: 1},
		},
		"by as many as it may run ahead": {
			moving{Source: 3, FinalTarget: 3, Surge: 5}, action{Source: 3, Target: 3},
		},
		"wait for new pods": {
			moving{Source: 3, Target: 1, FinalTarget: 3, Surge: 1}, action{Source: 3, Target: 1},
		},
		"then the source shrinks": {
			moving{Source: 3, Target: 1, Available: 1, FinalTarget: 3, Surge: 1}, action{Source: 2, Target: 1},
		},
		"never below what stays": {
			moving{Source: 3, Target: 2, Available: 2, FinalSource: 2, FinalTarget: 1, Surge: 1},
			action{Source: 2, Target: 2},
		},
		"done": {
			moving{Target: 3, Available: 3, FinalTarget: 3, Surge: 1}, action{Target: 3, Done: true},
		},
		"a surge of zero counts as one": {
			moving{Source: 1, FinalTarget: 1}, action{Source: 1, Target: 1},
		},
		"done where a part stays": {
			moving{Source: 2, Target: 1, Available: 1, FinalSource: 2, FinalTarget: 1, Surge: 1},
			action{Source: 2, Target: 1, Done: true},
		},
	} {
		if got := migrate.Move(row.now); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// Whatever happens, the pods of both are never fewer than in the beginning, and never more than that and the surge.
func TestMoveBounds(t *testing.T) {
	for source := range int32(6) {
		for target := range int32(4) {
			for moved := range source + 1 {
				for surge := int32(1); surge < 4; surge++ {
					checkMove(t, migrate.Moving{
						Source: source, Target: target, Available: target, FinalSource: source - moved, FinalTarget: target + moved,
						Surge: surge,
					})
				}
			}
		}
	}
}

func checkMove(t *testing.T, m migrate.Moving) {
	t.Helper()
	begin := m
	for range 40 {
		a := migrate.Move(m)
		if a.Done {
			if a.Source != m.FinalSource || a.Target != m.FinalTarget {
				t.Fatalf("%+v ended at %+v", begin, a)
			}
			return
		}
		m.Source, m.Target = a.Source, a.Target
		if total := m.Source + m.Available; total < begin.Source+begin.Target {
			t.Fatalf("%+v has %d pods at %+v", begin, total, a)
		}
		if m.Source+m.Target > begin.Source+begin.Target+m.Surge {
			t.Fatalf("%+v surges at %+v", begin, a)
		}
		if m.Available < m.Target {
			m.Available++
		}
	}
	t.Fatalf("%+v does not end", begin)
}

func TestTargets(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"deployment.kubernetes.io/revision": "1", "keep": "k"},
	}}
	d.Spec.Replicas = ptr.To[int32](5)
	if set := migrate.CloneSetOf(d, "new"); *set.Spec.Replicas != 0 || set.Name != "new" || len(set.Annotations) != 1 {
		t.Errorf("%+v", set)
	}
	set := migrate.Adopting(d, "new")
	if *set.Spec.Replicas != 5 || !set.Spec.UpdateStrategy.RollingUpdate.Paused ||
		set.Spec.ScaleStrategy.MaxUnavailable.IntVal != 0 {
		t.Errorf("%+v", set.Spec)
	}
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
	to := migrate.StatefulSetOf(s)
	gates := to.Spec.Template.Spec.ReadinessGates
	if r := to.Spec.UpdateStrategy.RollingUpdate; !r.Paused || *r.Partition != 2 || len(gates) != 1 {
		t.Errorf("%+v", to.Spec)
	}
	if len(s.Spec.Template.Spec.ReadinessGates) > 0 {
		t.Error("the source has changed")
	}
}

// A StatefulSet whose pods only their user updates stays one, and its template gets nothing that updates in place need.
func TestTargetKeepsOnDelete(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	to := migrate.StatefulSetOf(s)
	if u := to.Spec.UpdateStrategy; u.Type != s.Spec.UpdateStrategy.Type || u.RollingUpdate != nil ||
		!equality.Semantic.DeepEqual(to.Spec.Template, s.Spec.Template) {
		t.Errorf("OnDelete became %+v", to.Spec)
	}
}

// The ordinals of the pods are those of the target, whatever feature gates the manager has, and no claim is deleted
// before the target has all pods.
func TestTargetKeepsOrdinalsAndClaims(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	for start, want := range map[int32][]intstr.IntOrString{
		0: nil, 1: {intstr.FromString("0-0")}, 5: {intstr.FromString("0-4")},
	} {
		s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
		to := migrate.StatefulSetOf(s).Spec
		if !slices.Equal(to.ReserveOrdinals, want) || to.Ordinals != nil || to.PersistentVolumeClaimRetentionPolicy != nil {
			t.Errorf("start %d became %+v", start, to)
		}
	}
}
