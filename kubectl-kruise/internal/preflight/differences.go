package preflight

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/internal/schedule"
)

// difference is an entry of "What differs" in the documents that concerns objects which can be told apart.
type difference struct {
	text, page string
	// kinds are those whose objects are asked about.
	kinds []string
	// concerns reports whether an object is concerned.
	concerns func(object, situation) bool
}

// object of any kind.
type object struct{ unstructured.Unstructured }

func (o object) number(path ...string) (int64, bool) {
	n, found, err := unstructured.NestedInt64(o.Object, path...)
	return n, found && err == nil
}

func (o object) has(path ...string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	return found && err == nil
}

func (o object) list(path ...string) []any {
	all, _, _ := unstructured.NestedSlice(o.Object, path...)
	return all
}

func (o object) text(path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func (o object) String() string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// situation is what an entry needs besides the object.
type situation struct {
	Facts
	on map[gates.Gate]bool
}

// differences are the entries of "What changes" and "Which pods restart" in docs/takeover.md, and those of the pages of
// the kinds that an object tells.
func differences() []difference {
	return slices.Concat(restarts(), ofWorkloads(), ofOthers())
}

func always(object, situation) bool { return true }

// ofWorkloads are the entries of kinds that manage pods of their own.
func ofWorkloads() []difference {
	return []difference{
		{
			text: "no pod is created, updated in place or deleted in kube-system until the policy " +
				"kruise-manager-reserved admits it",
			page: "docs/security.md#token-of-the-manager",
			kinds: []string{
				"CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "BroadcastJob", "AdvancedCronJob", "EphemeralJob",
			},
			concerns: func(o object, _ situation) bool { return o.GetNamespace() == "kube-system" },
		},
		{
			text:  "the set stays as it is: replicas, times 1 and the number of claim templates, is above 100,000",
			page:  "docs/kinds/statefulset.md#what-differs-from-openkruise",
			kinds: []string{"StatefulSet"},
			concerns: func(o object, _ situation) bool {
				n, _ := o.number("spec", "replicas")
				return n*int64(1+len(o.list("spec", "volumeClaimTemplates"))) > 100_000
			},
		},
		{
			text: "the schedule, which OpenKruise has stopped after 100 missed ticks, continues: delete or pause it " +
				"if it must not run",
			page:     "docs/takeover.md#what-changes",
			kinds:    []string{"AdvancedCronJob"},
			concerns: stopped,
		},
		{
			text:     "more than 512 subsets: its workloads stay as they are",
			page:     "docs/kinds/uniteddeployment.md#what-differs-from-openkruise",
			kinds:    []string{"UnitedDeployment"},
			concerns: func(o object, _ situation) bool { return len(o.list("spec", "topology", "subsets")) > 512 },
		},
		{
			text:  "unschedulableLastSeconds is no field of 1.9 and newer: write unschedulableDuration",
			page:  "docs/kinds/uniteddeployment.md",
			kinds: []string{"UnitedDeployment"},
			concerns: func(o object, _ situation) bool {
				return o.has("spec", "topology", "scheduleStrategy", "adaptive", "unschedulableLastSeconds")
			},
		},
		{
			text: "maxUnavailable counts all nodes that fit, and nodes that do not fit take nothing of it; " +
				"--daemonset-loose-budget counts as OpenKruise does",
			page:  "docs/kinds/daemonset.md#what-differs-from-openkruise",
			kinds: []string{"DaemonSet"}, concerns: always,
		},
	}
}

// ofOthers are the entries of budgets, spreads, jobs and distributions.
func ofOthers() []difference {
	return []difference{
		{
			text:     "pods stay in their zones while other pods of the StatefulSet show them",
			page:     "docs/kinds/workloadspread.md#takeover",
			kinds:    []string{"WorkloadSpread"},
			concerns: ofShiftedSet,
		},
		{
			text:     "more than 100 subsets: the list must not grow",
			page:     "docs/kinds/workloadspread.md#what-differs-from-openkruise",
			kinds:    []string{"WorkloadSpread"},
			concerns: func(o object, _ situation) bool { return len(o.list("spec", "subsets")) > 100 },
		},
		{
			text: "the scheduler, taints and the garbage collector of Kubernetes are never refused; " +
				"--pub-exempt-users= refuses them as OpenKruise does",
			page:  "docs/kinds/podunavailablebudget.md#exempt-users",
			kinds: []string{"PodUnavailableBudget"}, concerns: always,
		},
		{
			text:     "a pod whose containers are all sidecars runs on",
			page:     "docs/sidecar-terminator.md#what-differs-from-openkruise",
			kinds:    []string{"BroadcastJob"},
			concerns: func(_ object, c situation) bool { return c.on[gates.SidecarTerminator] },
		},
		{
			text:  "labels and annotations of the template reach new jobs, once the manifest is applied again",
			page:  "docs/takeover.md#what-changes",
			kinds: []string{"AdvancedCronJob"},
			concerns: func(o object, _ situation) bool {
				return o.has("spec", "template", "broadcastJobTemplate") || o.has("spec", "template", "imageListPullJobTemplate")
			},
		},
		{
			text:  "pods that have ended stay, and pods that run survive a cordon",
			page:  "docs/kinds/broadcastjob.md#what-differs-from-openkruise",
			kinds: []string{"BroadcastJob"},
			concerns: func(o object, _ situation) bool {
				return !o.has("status", "completionTime")
			},
		},
		{
			text:     "numbers of subsets that do not add up run all replicas, with the condition SubsetFailure",
			page:     "docs/kinds/uniteddeployment.md#what-differs-from-openkruise",
			kinds:    []string{"UnitedDeployment"},
			concerns: doesNotAddUp,
		},
		{
			text:     "no copy is written in the namespace of the manager",
			page:     "docs/kinds/resourcedistribution.md#what-differs-from-openkruise",
			kinds:    []string{"ResourceDistribution"},
			concerns: includesNamespace,
		},
	}
}

// restarts are the states in which pods are recreated.
func restarts() []difference {
	return []difference{
		{
			text: "PODS RESTART: pods lack the volume of a claim template, and are recreated within the budget of " +
				"the update strategy",
			page:     "docs/takeover.md#which-pods-restart",
			kinds:    []string{"StatefulSet"},
			concerns: lacksVolume,
		},
		{
			text:     "PODS RESTART: claims wait for their file system to grow, and their pods are recreated",
			page:     "docs/takeover.md#which-pods-restart",
			kinds:    []string{"StatefulSet"},
			concerns: waitsForFileSystem,
		},
		{
			text:     "PODS ARE RELEASED: their ordinals have leading zeros",
			page:     "docs/takeover.md#what-changes",
			kinds:    []string{"StatefulSet"},
			concerns: hasLeadingZeros,
		},
	}
}

// podsOf are the pods that a set controls.
func podsOf(o object, c situation) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(c.Pods), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, &o) })
}

func templates(o object) []string {
	var names []string
	for _, t := range o.list("spec", "volumeClaimTemplates") {
		if m, ok := t.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(m, "metadata", "name")
			names = append(names, name)
		}
	}
	return names
}

func lacksVolume(o object, c situation) bool {
	for _, pod := range podsOf(o, c) {
		for _, name := range templates(o) {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
				return true
			}
		}
	}
	return false
}

func waitsForFileSystem(o object, c situation) bool {
	if !c.on[gates.StatefulSetAutoResizePVCGate] {
		return false
	}
	return slices.ContainsFunc(c.Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		pending := slices.ContainsFunc(claim.Status.Conditions, func(p corev1.PersistentVolumeClaimCondition) bool {
			return p.Type == corev1.PersistentVolumeClaimFileSystemResizePending && p.Status == corev1.ConditionTrue
		})
		return pending && claim.Namespace == o.GetNamespace() &&
			slices.ContainsFunc(templates(o), func(name string) bool {
				return strings.HasPrefix(claim.Name, name+"-"+o.GetName()+"-")
			})
	})
}

func hasLeadingZeros(o object, c situation) bool {
	return slices.ContainsFunc(podsOf(o, c), func(pod *corev1.Pod) bool {
		ordinal, is := strings.CutPrefix(pod.Name, o.GetName()+"-")
		return is && len(ordinal) > 1 && ordinal[0] == '0'
	})
}

// stopped reports whether more than 100 ticks have been missed, after which OpenKruise creates nothing.
func stopped(o object, c situation) bool {
	if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); paused {
		return false
	}
	var in schedule.In
	if zone := o.text("spec", "timeZone"); zone != "" {
		in.Zone = &zone
	}
	parsed, err := schedule.Parse(o.text("spec", "schedule"), in)
	if err != nil {
		return false
	}
	last := o.GetCreationTimestamp().Time
	if t, err := time.Parse(time.RFC3339, o.text("status", "lastScheduleTime")); err == nil {
		last = t
	}
	if seconds, set := o.number("spec", "startingDeadlineSeconds"); set {
		if earliest := c.Now.Add(-time.Duration(seconds) * time.Second); earliest.After(last) {
			last = earliest
		}
	}
	for range 101 {
		if last = parsed.Next(last); last.IsZero() || last.After(c.Now) {
			return false
		}
	}
	return true
}

// ofShiftedSet reports whether the target is a StatefulSet whose ordinals do not begin at 0, or have gaps.
func ofShiftedSet(o object, c situation) bool {
	if o.text("spec", "targetRef", "kind") != "StatefulSet" {
		return false
	}
	return slices.ContainsFunc(c.Objects, func(u unstructured.Unstructured) bool {
		set := object{u}
		start, _ := set.number("spec", "ordinals", "start")
		return set.GetKind() == "StatefulSet" && set.GetNamespace() == o.GetNamespace() &&
			set.GetName() == o.text("spec", "targetRef", "name") && (start > 0 || len(set.list("spec", "reserveOrdinals")) > 0)
	})
}

// doesNotAddUp reports whether all subsets have numbers of replicas whose sum is not that of the whole.
func doesNotAddUp(o object, _ situation) bool {
	subsets := o.list("spec", "topology", "subsets")
	sum := int64(0)
	for _, s := range subsets {
		m, _ := s.(map[string]any)
		n, found, err := unstructured.NestedInt64(m, "replicas")
		if !found || err != nil {
			return false
		}
		sum += n
	}
	total, set := o.number("spec", "replicas")
	return len(subsets) > 0 && set && sum != total
}

// includesNamespace reports whether a distribution names the namespace of the manager, or all.
func includesNamespace(o object, c situation) bool {
	if all, _, _ := unstructured.NestedBool(o.Object, "spec", "targets", "allNamespaces"); all {
		return true
	}
	return slices.ContainsFunc(o.list("spec", "targets", "includedNamespaces", "list"), func(entry any) bool {
		m, ok := entry.(map[string]any)
		return ok && m["name"] == c.Namespace
	})
}
