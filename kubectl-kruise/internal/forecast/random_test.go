package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
)

// What the forecast shows is what the reconciler then does, on nodes that are as fast as the forecast takes them to be:
// the fate of each pod, which containers restart, the batches with their times, and what there is in the end. Where two
// things happen in the same second, the batches may differ, and how few pods are available meanwhile.
func TestRandomCloneSets(t *testing.T) { runWorlds(t, (*lot).cloneSets, (*lot).changeCloneSet) }

func TestRandomStatefulSets(t *testing.T) {
	runWorlds(t, (*lot).statefulSets, (*lot).changeStatefulSet)
}

func TestRandomDaemonSets(t *testing.T) { runWorlds(t, (*lot).daemonSets, (*lot).changeDaemonSet) }

func runWorlds[T workload](t *testing.T, draw func(*lot, *testing.T) (*world, T), change func(*lot) func(T)) {
	t.Helper()
	ties := 0
	for seed := range *worlds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			l := &lot{rand.New(rand.NewPCG(seed, 3))}
			w, set := draw(l, t)
			at := w.Now()
			f := forecastOf(t, w.model, set, forecast.Options{Pace: w.pace}, change(l))
			w.apply(t, set)
			if diff := cmp.Diff(w.fates(), fatesOf(f)); diff != "" {
				t.Errorf("fates (-happened +forecast):\n%s", diff)
			}
			diff := cmp.Diff(w.batches(at), batchesOf(f))
			if lowest := w.compareCounts(t, f); diff != "" || lowest != w.lowest {
				t.Logf("%d available, forecast %d; batches (-happened +forecast):\n%s", w.lowest, lowest, diff)
				ties++
			}
		})
	}
	if most := max(int(*worlds)/50, 1); ties > most {
		t.Errorf("%d of %d worlds had other batches than forecast, want %d at most", ties, *worlds, most)
	}
}

// On nodes that take another time for each pod, the fates are those of the forecast. Where a partition or a surge
// chooses among pods by their availability, as many pods have each fate.
func TestUneven(t *testing.T) {
	for seed := range *worlds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			l := &lot{rand.New(rand.NewPCG(seed, 4))}
			w, set := l.cloneSets(t)
			w.rest(12)
			w.Look(set)
			f := forecastOf(t, w.model, set, forecast.Options{Pace: w.pace}, l.changeCloneSet())
			w.uneven = true
			w.apply(t, set)
			happened, expected := w.fates(), fatesOf(f)
			surge := set.Spec.UpdateStrategy.RollingUpdate.MaxSurge.String() != "0"
			if surge || f.Bounds.Partition > 0 || len(f.Pods) > int(f.Bounds.Replicas) {
				happened, expected = inNumbers(happened), inNumbers(expected)
			}
			if diff := cmp.Diff(happened, expected); diff != "" {
				t.Errorf("fates (-happened +forecast):\n%s", diff)
			}
			w.compareCounts(t, f)
		})
	}
}

// lot draws.
type lot struct{ *rand.Rand }

func (l *lot) one(of int) bool { return l.IntN(of) == 0 }

func (l *lot) amount(most int) string {
	if l.one(3) {
		return fmt.Sprintf("%d%%", 10*l.IntN(8))
	}
	return fmt.Sprint(l.IntN(most + 1))
}

// cloneSets is a world with a CloneSet, in the middle of a rollout or at rest.
func (l *lot) cloneSets(t *testing.T) (*world, *v1beta1.CloneSet) {
	t.Helper()
	set := web(int32(l.IntN(10)), func(set *v1beta1.CloneSet) {
		u := set.Spec.UpdateStrategy.RollingUpdate
		u.MaxUnavailable, u.MaxSurge = amount(fmt.Sprint(1+l.IntN(3))), amount(l.amount(2))
		if l.one(4) {
			u.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdateStrategyType
		}
		if l.one(4) {
			u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: int32(l.IntN(5))}
		}
		if l.one(3) {
			set.Spec.MinReadySeconds = int32(l.IntN(6))
		}
		l.hooks(set)
	})
	w := &world{
		model: newModel(t, set), minReady: set.Spec.MinReadySeconds, hooks: set.Spec.Lifecycle,
	}
	begin(l, w, set, *set.Spec.Replicas > 0, image)
	return w, set
}

// begin brings a workload to rest, or into the middle of a rollout. The first version exists for an hour.
func begin[T workload](l *lot, w *world, set T, pods bool, image func(string) func(T)) {
	w.random, w.busy, w.doing = l.Rand, map[types.UID]time.Time{}, map[types.UID]string{}
	w.pace = forecast.Pace{Start: l.seconds(), Restart: l.seconds(), End: l.seconds()}
	w.addNodes(1 + l.IntN(6))
	w.Put(set)
	w.rest(12)
	if l.one(2) {
		to, ticks := "web:2", l.IntN(20)
		if l.one(4) && pods {
			to = "web:broken"
			ticks += 14 // all nodes have tried
		}
		w.Look(set)
		image(to)(set)
		set.SetGeneration(set.GetGeneration() + 1)
		w.Put(set)
		for range ticks {
			w.tick()
		}
	}
	w.Look(set)
}

func (l *lot) seconds() forecast.Seconds {
	return forecast.Seconds(time.Duration(1+l.IntN(6)) * time.Second)
}

func (l *lot) hooks(set *v1beta1.CloneSet) {
	if l.one(2) {
		return
	}
	set.Spec.Lifecycle = &kruise.Lifecycle{}
	hook := func(label string) *kruise.LifecycleHook {
		set.Spec.Template.Labels[label] = "yes"
		return &kruise.LifecycleHook{LabelsHandler: map[string]string{label: "yes"}, MarkPodNotReady: l.one(2)}
	}
	if l.one(2) {
		set.Spec.Lifecycle.InPlaceUpdate = hook("drain")
	}
	if l.one(2) {
		set.Spec.Lifecycle.PreDelete = hook("leave")
	}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
}

// change is one or two of what users do.
func (l *lot) changeCloneSet() func(*v1beta1.CloneSet) {
	var changes []func(*v1beta1.CloneSet)
	for range 1 + l.IntN(2) {
		n, some := int32(l.IntN(10)), l.amount(5)
		changes = append(changes, []func(*v1beta1.CloneSet){
			image("web:3"),
			image("web:1"),
			image("web:3"),
			func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[1].Image = "log:3" },
			func(set *v1beta1.CloneSet) {
				set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "3"}}
			},
			func(set *v1beta1.CloneSet) { set.Spec.Template.Annotations = map[string]string{"level": "3"} },
			func(set *v1beta1.CloneSet) { set.Spec.Replicas = &n },
			partition(some),
			func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true },
			func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount(some) },
		}[l.IntN(10)])
	}
	return all(changes...)
}

func (l *lot) statefulSets(t *testing.T) (*world, *v1beta1.StatefulSet) {
	t.Helper()
	set := database(int32(l.IntN(8)), func(set *v1beta1.StatefulSet) {
		u := set.Spec.UpdateStrategy.RollingUpdate
		if l.one(2) {
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
			u.MaxUnavailable = amount(fmt.Sprint(1 + l.IntN(3)))
		}
		if l.one(4) {
			u.PodUpdatePolicy = v1beta1.RecreatePodUpdateStrategyType
		}
		if l.one(3) {
			u.MinReadySeconds = ptrTo(int32(l.IntN(5)))
		}
	})
	w := &world{model: newModel(t, set)}
	w.minReady = *set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds
	begin(l, w, set, *set.Spec.Replicas > 0, func(image string) func(*v1beta1.StatefulSet) {
		return func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image }
	})
	return w, set
}

func (l *lot) changeStatefulSet() func(*v1beta1.StatefulSet) {
	var changes []func(*v1beta1.StatefulSet)
	for range 1 + l.IntN(2) {
		n, some := int32(l.IntN(8)), l.amount(5)
		changes = append(changes, []func(*v1beta1.StatefulSet){
			func(set *v1beta1.StatefulSet) { l.template(&set.Spec.Template) },
			func(set *v1beta1.StatefulSet) { l.template(&set.Spec.Template) },
			func(set *v1beta1.StatefulSet) { set.Spec.Replicas = &n },
			func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n },
			func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true },
			func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount(some) },
		}[l.IntN(6)])
	}
	return func(set *v1beta1.StatefulSet) {
		for _, change := range changes {
			change(set)
		}
	}
}

// template changes a template in something.
func (l *lot) template(t *corev1.PodTemplateSpec) {
	switch l.IntN(5) {
	case 0:
		t.Spec.Containers[0].Image = "web:1"
	case 1:
		t.Spec.Containers[1].Image = "log:3"
	case 2:
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "3"}}
	case 3:
		t.Annotations = map[string]string{"level": "3"}
	default:
		t.Spec.Containers[0].Image = "web:3"
	}
}

func (l *lot) daemonSets(t *testing.T) (*world, *v1beta1.DaemonSet) {
	t.Helper()
	set := agent(func(set *v1beta1.DaemonSet) {
		u := set.Spec.UpdateStrategy.RollingUpdate
		switch {
		case l.one(3):
			u.Type, u.MaxSurge, u.MaxUnavailable = v1beta1.StandardRollingUpdateType, amount("1"), amount("0")
		case l.one(3):
			u.Type = v1beta1.StandardRollingUpdateType
		default:
			u.MaxUnavailable = amount(fmt.Sprint(1 + l.IntN(3)))
		}
		if l.one(3) {
			set.Spec.MinReadySeconds = int32(l.IntN(5))
		}
	})
	w := &world{model: newModel(t, set), minReady: set.Spec.MinReadySeconds}
	begin(l, w, set, true, func(image string) func(*v1beta1.DaemonSet) {
		return func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = image }
	})
	return w, set
}

func (l *lot) changeDaemonSet() func(*v1beta1.DaemonSet) {
	var changes []func(*v1beta1.DaemonSet)
	for range 1 + l.IntN(2) {
		some := l.amount(5)
		changes = append(changes, []func(*v1beta1.DaemonSet){
			func(set *v1beta1.DaemonSet) { l.template(&set.Spec.Template) },
			func(set *v1beta1.DaemonSet) { l.template(&set.Spec.Template) },
			func(set *v1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = amount(some) },
			func(set *v1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = ptrTo(true) },
			func(set *v1beta1.DaemonSet) {
				set.Spec.UpdateStrategy.RollingUpdate.Selector = &metav1.LabelSelector{
					MatchLabels: map[string]string{"canary": "yes"},
				}
			},
			func(set *v1beta1.DaemonSet) {
				set.Spec.Template.Spec.NodeSelector = map[string]string{"canary": "yes"}
			},
		}[l.IntN(6)])
	}
	return func(set *v1beta1.DaemonSet) {
		for _, change := range changes {
			change(set)
		}
	}
}
