package statefulset

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podtest"
)

type changes = []func(*v1beta1.StatefulSet)

// planCase is a set, what it owns, and the writes of its next pass.
type planCase struct {
	why      string
	options  Options
	replicas int32
	set      changes
	pods     []*corev1.Pod
	claims   []*corev1.PersistentVolumeClaim
	want     []string
	// after is when the next pass is due although nothing changes; zero for never.
	after time.Duration
}

func checkPlans(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.replicas, c.set...)
			c.options.Now, c.options.Live = o.options.Now, o.server
			o.options = c.options
			o.pods(c.pods...)
			for _, claim := range c.claims {
				o.put(claim, types.UID("uid-"+claim.Name))
			}
			got, after := o.writes()
			if c.after != 0 && after != c.after {
				t.Errorf("%s: the next pass is due after %s, want %s", c.why, after, c.after)
			}
			if diff := cmp.Diff(append([]string{}, c.want...), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func pod(name, image string, changes ...podtest.Change) *corev1.Pod {
	return podtest.New(name, image, changes...)
}

// How many pods are created and deleted, and which.
func TestPlanScale(t *testing.T) {
	notReady := podtest.Change(podtest.NotReady)
	checkPlans(t, map[string]planCase{
		"converged":            {why: "nothing is left to do", replicas: 2, pods: several("web:1", 0, 1)},
		"ordered, new":         {why: "the first pod comes first", replicas: 3, want: []string{"create web-0 of web:1"}},
		"ordered, not ready":   {why: "no pod is created before those before it are ready", replicas: 3, pods: []*corev1.Pod{pod("web-0", "web:1", notReady)}},
		"ordered, ready":       {why: "the second follows the first", replicas: 3, pods: several("web:1", 0), want: []string{"create web-1 of web:1"}},
		"ordered, minReady":    {why: "the pod is not available for another 59 seconds", replicas: 3, set: changes{minReady(60)}, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.ReadyFor(time.Second))}, after: 59 * time.Second},
		"ordered, terminating": {why: "the name is taken until the pod is gone", replicas: 2, pods: []*corev1.Pod{pod("web-0", "web:1", terminating(0))}},
		"parallel":             {why: "all are created at once, whatever minReadySeconds", replicas: 3, set: changes{parallel, minReady(60)}, want: []string{"create web-0 of web:1", "create web-1 of web:1", "create web-2 of web:1"}},
		"parallel, limited":    {why: "two may be unavailable", replicas: 5, set: changes{parallel, scalesWith(2)}, want: []string{"create web-0 of web:1", "create web-1 of web:1"}},
		"parallel, one ready":  {why: "a third pod follows", replicas: 5, set: changes{parallel, scalesWith(2)}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", notReady)}, want: []string{"create web-2 of web:1"}},
		"parallel, 3 to 10":    {why: "creation stops at 5 pods", replicas: 10, set: changes{parallel, scalesWith(2)}, pods: several("web:1", 0, 1, 2), want: []string{"create web-3 of web:1", "create web-4 of web:1"}},
		"parallel, canary":     {why: "a broken canary at the top does not hold back a drained pod", replicas: 4, set: changes{parallel, inPlace, withImage("web:2"), maxUnavailable(2), scalesWith(2)}, pods: []*corev1.Pod{pod("web-1", "web:1"), pod("web-2", "web:2", notReady), pod("web-3", "web:2", notReady)}, want: []string{"create web-0 of web:2"}},
		"parallel, later":      {why: "the budget is spent from the first ordinal on", replicas: 3, set: changes{parallel, scalesWith(1)}, pods: []*corev1.Pod{pod("web-1", "web:1"), pod("web-2", "web:1", notReady)}, want: []string{"create web-0 of web:1"}},
		"parallel, percentage": {why: "20% of 3 is at least 1", replicas: 3, set: changes{parallel, scalesWith("20%")}, want: []string{"create web-0 of web:1"}},
		"ordered, down":        {why: "the last pod goes first, alone", replicas: 1, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2"}},
		"down, last unready":   {why: "the only unready pod goes", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1"), pod("web-2", "web:1", notReady)}, want: []string{"delete web-2"}},
		"down, two unready":    {why: "the first of them may be what the last one needs", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", notReady), pod("web-2", "web:1", notReady)}},
		"down, first unready":  {why: "no pod goes before all wanted pods are available", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", notReady), pod("web-1", "web:1"), pod("web-2", "web:1")}},
		"down, parallel":       {why: "all go at once", replicas: 1, set: changes{parallel}, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2", "delete web-1"}},
		"down, name is taken":  {why: "a pod of another owner has a wanted name; what is too many goes", replicas: 2, set: changes{parallel}, pods: append(several("web:1", 1, 5), foreign("web-0")), want: []string{"delete web-5"}},
		"down, ordered, taken": {why: "no pod goes before all wanted pods are available", replicas: 2, pods: append(several("web:1", 1, 5), foreign("web-0"))},
		"chosen, name taken":   {why: "the missing pod spends the budget", replicas: 2, set: changes{parallel}, pods: append(marked("web:1", 1), foreign("web-0"))},
		"chosen, budget of 2":  {why: "one more may be unavailable", replicas: 2, set: changes{parallel, maxUnavailable(2)}, pods: append(marked("web:1", 1), foreign("web-0")), want: []string{"delete web-1"}},
		"failed":               {why: "an evicted pod is deleted, to come back with its name", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Phase(corev1.PodFailed))}, want: []string{"delete web-0"}},
		"failed, ordered":      {why: "the turn of the pod comes when those before it are available", replicas: 2, pods: []*corev1.Pod{pod("web-0", "web:1", notReady), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))}},
		"failed, two":          {why: "the first one is replaced first", replicas: 3, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed)), pod("web-2", "web:1", podtest.Phase(corev1.PodSucceeded))}, want: []string{"delete web-1"}},
		"failed, missing":      {why: "a missing pod before it comes first", replicas: 2, pods: []*corev1.Pod{pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))}, want: []string{"create web-0 of web:1"}},
		"failed, not wanted":   {why: "the last pod goes first", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed)), pod("web-2", "web:1")}, want: []string{"delete web-2"}},
		"failed, last":         {why: "it never runs again, and nothing is left to wait for", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", notReady), pod("web-2", "web:1", podtest.Phase(corev1.PodFailed))}, want: []string{"delete web-2"}},
		"failed, blocked":      {why: "no pod goes before all wanted pods are available", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", notReady), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))}},
		"failed, budget of 1":  {why: "the pod is replaced all the same", replicas: 2, set: changes{parallel, scalesWith(1)}, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Phase(corev1.PodFailed)), pod("web-1", "web:1")}, want: []string{"delete web-0"}},
		"being deleted": {why: "its pods are those of the garbage collector", replicas: 2, set: changes{func(s *v1beta1.StatefulSet) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: podtest.Noon()}, []string{"a/b"}
		}}},
		"released":     {why: "the selector no longer matches the pod; its name is taken until it is gone", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("app", "other"))}, want: []string{"patch web-0"}},
		"misnamed":     {why: "a pod of another name is released", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-x", "web:1")}, want: []string{"patch web-x"}},
		"adopted":      {why: "a matching pod without a controller is adopted, and not created again", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("orphan", ""))}, want: []string{"patch web-0"}},
		"not adopted":  {why: "a pod that the selector does not match is another's", replicas: 0, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("orphan", ""), podtest.Label("app", "other"))}},
		"renamed":      {why: "the label of the name is repaired", replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("statefulset.kubernetes.io/pod-name", "web-7"))}, want: []string{"patch web-0"}},
		"no replicas":  {why: "all go", replicas: 0, set: changes{parallel}, pods: several("web:1", 0), want: []string{"delete web-0"}},
		"chosen":       {why: "from the last, as many as may be unavailable", replicas: 6, set: changes{parallel, maxUnavailable(3)}, pods: slices.Concat(marked("web:1", 0, 1, 2), several("web:1", 3, 4), marked("web:1", 5)), want: []string{"delete web-5", "delete web-2", "delete web-1"}},
		"chosen, held": {why: "the paused set deletes no chosen pod", replicas: 1, set: changes{paused}, pods: marked("web:1", 0)},
	})
}

// foreign is a pod that the set neither controls nor adopts.
func foreign(name string) *corev1.Pod {
	return pod(name, "web:1", podtest.Label("orphan", ""), podtest.Label("app", "other"))
}

func marked(image string, ordinals ...int) []*corev1.Pod {
	pods := several(image, ordinals...)
	for _, pod := range pods {
		pod.Labels[kruise.SpecifiedDeleteKey] = ""
	}
	return pods
}

// Which ordinals are wanted.
func TestPlanOrdinals(t *testing.T) {
	create := func(pods ...string) []string {
		var all []string
		for _, pod := range pods {
			all = append(all, "create "+pod+" of web:1")
		}
		return all
	}
	starts := Options{StartOrdinal: true}
	checkPlans(t, map[string]planCase{
		"reserved":               {why: "the reserved ordinal is left out", replicas: 4, set: changes{parallel, reserve(1)}, want: create("web-0", "web-2", "web-3", "web-4")},
		"a range":                {why: "0 and 2 to 5 are left out", replicas: 3, set: changes{parallel, reserve(0, "2-5")}, want: create("web-1", "web-6", "web-7")},
		"leading zeros":          {why: "0003-005 is 3 to 5", replicas: 4, set: changes{parallel, reserve("0003-005")}, want: create("web-0", "web-1", "web-2", "web-6")},
		"a range without bounds": {why: "no range is expanded", replicas: 1, set: changes{parallel, reserve("0-2000000000")}, want: create("web-2000000001")},
		"one more reserved":      {why: "the pod beyond the end is created first", replicas: 4, set: changes{parallel, reserve(1, 3)}, pods: several("web:1", 0, 2, 3, 4), want: create("web-5")},
		"then":                   {why: "the pod of the reserved ordinal goes", replicas: 4, set: changes{parallel, reserve(1, 3)}, pods: several("web:1", 0, 2, 3, 4, 5), want: []string{"delete web-3"}},
		"reserved, one fewer":    {why: "the pod only goes", replicas: 3, set: changes{parallel, reserve(1, 3)}, pods: several("web:1", 0, 2, 3, 4), want: []string{"delete web-3"}},
		"start":                  {why: "2, 3, 4", replicas: 3, options: starts, set: changes{parallel, start(2)}, want: create("web-2", "web-3", "web-4")},
		"start without the gate": {why: "0, 1", replicas: 2, set: changes{parallel, start(2)}, want: create("web-0", "web-1")},
		"start below zero":       {why: "0 counts", replicas: 1, options: starts, set: changes{parallel, start(-3)}, want: create("web-0")},
		"start and reserved":     {why: "2, 5, 6, 7", replicas: 4, options: starts, set: changes{parallel, start(1), reserve(1, 3, 4)}, want: create("web-2", "web-5", "web-6", "web-7")},
		"start is raised":        {why: "what is missing comes first", replicas: 2, options: starts, set: changes{parallel, start(1)}, pods: several("web:1", 0, 1), want: create("web-2")},
		"start was raised":       {why: "the pod before the start goes", replicas: 2, options: starts, set: changes{parallel, start(1)}, pods: several("web:1", 0, 1, 2), want: []string{"delete web-0"}},
		"start, partition": {
			why: "the first three wanted ordinals stay old, whatever their numbers", replicas: 5, options: starts, set: changes{parallel, start(2), withImage("web:2"), partition(3)}, pods: slices.Concat(several("web:1", 2, 4), several("web:2", 5, 6)),
			want: create("web-3"),
		},
	})
}

// Which pods are updated, and how.
func TestPlanUpdates(t *testing.T) {
	two := withImage("web:2")
	only := rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.PodUpdatePolicy = v1beta1.InPlaceOnlyPodUpdateStrategyType
	})
	grace := rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60}
	})
	env := func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}
	weigh := rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: &kruise.UpdatePriorityStrategy{
			WeightPriority: []kruise.UpdatePriorityWeightTerm{{Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"first": "yes"}}}},
		}}
	})
	checkPlans(t, map[string]planCase{
		"partition of all":      {why: "no pod is updated", replicas: 3, set: changes{two, partition(3)}, pods: several("web:1", 0, 1, 2)},
		"partition of two":      {why: "the last is updated", replicas: 3, set: changes{two, partition(2)}, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2"}},
		"partition, gone":       {why: "each comes back at its own revision", replicas: 3, set: changes{two, parallel, partition(2)}, pods: several("web:1", 1), want: []string{"create web-0 of web:1", "create web-2 of web:2"}},
		"partition, reserved":   {why: "the partition counts pods, not ordinals", replicas: 3, set: changes{two, parallel, reserve(1, 3), partition(2), maxUnavailable(3)}, pods: several("web:1", 0, 2, 4), want: []string{"delete web-4"}},
		"burst of 6":            {why: "5 and 4 go first", replicas: 6, set: changes{two, parallel, partition(3), maxUnavailable(2)}, pods: several("web:1", 0, 1, 2, 3, 4, 5), want: []string{"delete web-5", "delete web-4"}},
		"burst, 4 is ready":     {why: "3 goes while 5 is not ready", replicas: 6, set: changes{two, parallel, partition(3), maxUnavailable(2)}, pods: slices.Concat(several("web:1", 0, 1, 2, 3), several("web:2", 4), []*corev1.Pod{pod("web-5", "web:2", podtest.NotReady)}), want: []string{"delete web-3"}},
		"one terminating":       {why: "one more may be unavailable", replicas: 6, set: changes{two, parallel, maxUnavailable(2)}, pods: append(several("web:1", 1, 2, 3, 4, 5), pod("web-0", "web:1", terminating(0))), want: []string{"delete web-5"}},
		"two terminating":       {why: "no more may be unavailable", replicas: 6, set: changes{two, parallel, maxUnavailable(2)}, pods: append(several("web:1", 1, 3, 4, 5), pod("web-0", "web:1", terminating(0)), pod("web-2", "web:1", terminating(0)))},
		"percentage":            {why: "20% of 3 is at least 1", replicas: 3, set: changes{two, parallel, maxUnavailable("20%")}, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2"}},
		"more than 1, ordered":  {why: "1 counts with OrderedReady", replicas: 3, set: changes{two, maxUnavailable(3)}, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2"}},
		"in place":              {why: "the last changes first", replicas: 2, set: changes{two, inPlace}, pods: several("web:1", 0, 1), want: []string{"take web-1 out of traffic", "update web-1 to web:2"}},
		"in place, minReady":    {why: "the updated pod is not available yet", replicas: 2, set: changes{two, parallel, inPlace, minReady(60)}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:2", podtest.ReadyFor(30*time.Second))}, after: 30 * time.Second},
		"in place, not ready":   {why: "the next waits", replicas: 2, set: changes{two, inPlace}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:2", podtest.NotReady)}},
		"in place, grace":       {why: "the pod leaves traffic, and its containers change later", replicas: 1, set: changes{two, inPlace, grace}, pods: several("web:1", 0), want: []string{"take web-0 out of traffic", "update web-0 to web:1"}},
		"not in place":          {why: "no running container gets another environment", replicas: 1, set: changes{env, inPlace}, pods: several("web:1", 0), want: []string{"delete web-0"}},
		"not in place, only":    {why: "the pod is not recreated", replicas: 1, set: changes{env, only}, pods: several("web:1", 0)},
		"OnDelete":              {why: "no pod is updated", replicas: 2, set: changes{two, onDelete}, pods: several("web:1", 0, 1)},
		"OnDelete, gone":        {why: "the deleted pod comes back updated", replicas: 2, set: changes{two, onDelete}, pods: several("web:1", 0), want: []string{"create web-1 of web:2"}},
		"OnDelete, chosen":      {why: "the label is ignored", replicas: 1, set: changes{two, onDelete}, pods: marked("web:1", 0)},
		"paused":                {why: "no pod is updated", replicas: 2, set: changes{two, paused}, pods: several("web:1", 0, 1)},
		"paused, scaled":        {why: "the set is scaled", replicas: 3, set: changes{two, paused}, pods: several("web:1", 0, 1), want: []string{"create web-2 of web:2"}},
		"chosen":                {why: "the chosen pod is deleted, whatever the partition", replicas: 4, set: changes{two, parallel, partition(2)}, pods: slices.Concat(several("web:1", 0), marked("web:1", 1), several("web:2", 2, 3)), want: []string{"delete web-1"}},
		"chosen, gone":          {why: "the pod below the partition comes back old", replicas: 4, set: changes{two, parallel, partition(2)}, pods: slices.Concat(several("web:1", 0), several("web:2", 2, 3)), want: []string{"create web-1 of web:1"}},
		"unordered":             {why: "6 of 10 stay, whichever", replicas: 10, set: changes{two, parallel, unordered, partition(6), maxUnavailable(10)}, pods: slices.Concat(several("web:1", 0, 1, 2, 3, 4, 5, 8, 9), several("web:2", 6, 7)), want: []string{"delete web-9", "delete web-8"}},
		"unordered, weighted":   {why: "the weight decides", replicas: 3, set: changes{two, parallel, weigh}, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("first", "yes")), pod("web-1", "web:1"), pod("web-2", "web:1")}, want: []string{"delete web-0"}},
		"unordered, gone":       {why: "enough others are old, so that the pod comes back updated", replicas: 3, set: changes{two, parallel, unordered, partition(2)}, pods: several("web:1", 1, 2), want: []string{"create web-0 of web:2"}},
		"broken, ordered":       {why: "no update begins before all pods are available", replicas: 2, set: changes{two}, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.NotReady), pod("web-1", "web:1")}},
		"broken first":          {why: "the broken pod is updated", replicas: 2, options: Options{UnavailableFirst: true}, set: changes{two}, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.NotReady), pod("web-1", "web:1")}, want: []string{"delete web-0"}},
		"refused":               {why: "MayUpdate refuses", replicas: 1, options: Options{MayUpdate: func(*corev1.Pod) (bool, string) { return false, "a drill" }}, set: changes{two}, pods: several("web:1", 0)},
		"maxUnavailable absurd": {why: "the default counts", replicas: 3, set: changes{two, parallel, maxUnavailable("x")}, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2"}},
	})
}

// Which lifecycle states pods move to, and what hooks hold.
func TestPlanHooks(t *testing.T) {
	two := withImage("web:2")
	preDelete, preNormal := hooks(kruise.Lifecycle{PreDelete: byLabel()}), hooks(kruise.Lifecycle{PreNormal: byLabel()})
	updates := hooks(kruise.Lifecycle{InPlaceUpdate: byLabel()})
	state := podtest.State
	checkPlans(t, map[string]planCase{
		"held update":         {why: "the containers stay", replicas: 1, set: changes{two, inPlace, updates}, pods: []*corev1.Pod{pod("web-0", "web:1", held)}, want: []string{"move web-0 to PreparingUpdate"}},
		"update goes on":      {why: "the hook is gone", replicas: 1, set: changes{two, inPlace, updates}, pods: []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingUpdate))}, want: []string{"take web-0 out of traffic", "update web-0 to web:2"}},
		"updated":             {why: "the hook is not restored", replicas: 1, set: changes{two, inPlace, updates}, pods: []*corev1.Pod{pod("web-0", "web:2", state(kruise.LifecycleStateUpdating))}, want: []string{"move web-0 to Updated"}},
		"restored":            {why: "the hook is restored", replicas: 1, set: changes{two, inPlace, updates}, pods: []*corev1.Pod{pod("web-0", "web:2", held, state(kruise.LifecycleStateUpdated))}, want: []string{"move web-0 to Normal"}},
		"rolled back":         {why: "no container restarts", replicas: 1, set: changes{inPlace, updates}, pods: []*corev1.Pod{pod("web-0", "web:1", held, state(kruise.LifecycleStatePreparingUpdate))}, want: []string{"move web-0 to Normal"}},
		"held recreation":     {why: "the pod stays until its hook is gone", replicas: 1, set: changes{two, preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1", held)}, want: []string{"move web-0 to PreparingDelete"}},
		"recreation goes on":  {why: "the hook is gone", replicas: 1, set: changes{two, preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingDelete))}, want: []string{"delete web-0"}},
		"held scale-in":       {why: "the pod stays until its hook is gone", replicas: 1, set: changes{preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", held)}, want: []string{"move web-1 to PreparingDelete"}},
		"one at a time":       {why: "no second pod is held while the first one is", replicas: 1, set: changes{preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", held), pod("web-2", "web:1", held, state(kruise.LifecycleStatePreparingDelete))}},
		"held, and updated":   {why: "a hook that takes hours stops no rollout", replicas: 1, set: changes{two, preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", held, state(kruise.LifecycleStatePreparingDelete))}, want: []string{"delete web-0"}},
		"wanted again":        {why: "the deletion is taken back", replicas: 2, set: changes{preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", held, state(kruise.LifecycleStatePreparingDelete))}, want: []string{"move web-1 to PreparingNormal"}},
		"new, without a hook": {why: "the hook has nothing to set", replicas: 1, set: changes{preNormal}, want: []string{"create web-0 of web:1"}},
		"new, held":           {why: "the next pod waits for the hook", replicas: 2, set: changes{preNormal}, pods: []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingNormal))}},
		"new, normal":         {why: "the pod has what the hook asks for", replicas: 1, set: changes{preNormal}, pods: []*corev1.Pod{pod("web-0", "web:1", held, state(kruise.LifecycleStatePreparingNormal))}, want: []string{"move web-0 to Normal"}},
		"failed, held":        {why: "the owner of the hook sees that the evicted pod is to be deleted", replicas: 1, set: changes{preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1", held, podtest.Phase(corev1.PodFailed))}, want: []string{"move web-0 to PreparingDelete"}},
		"finished, parallel":  {why: "each pod is held on its own", replicas: 2, set: changes{parallel, preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1", held, podtest.Phase(corev1.PodSucceeded)), pod("web-1", "web:1", held)}, want: []string{"move web-0 to PreparingDelete"}},
		"failed, waits":       {why: "the hook holds the evicted pod", replicas: 1, set: changes{preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1", held, podtest.Phase(corev1.PodFailed), state(kruise.LifecycleStatePreparingDelete))}},
		"failed, released":    {why: "the hook is gone", replicas: 1, set: changes{preDelete}, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Phase(corev1.PodFailed), state(kruise.LifecycleStatePreparingDelete))}, want: []string{"delete web-0"}},
	})
}

// A set asks for so many pods and claims as one pass can hold.
func TestInvalidNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		why      string
		replicas int32
		claims   int
		valid    bool
	}{
		"many pods":             {"a pass holds their names", 100_000, 0, true},
		"too many pods":         {"a typing error must not take the memory of the manager", 100_001, 0, false},
		"many claims":           {"pods and claims count together", 25_000, 3, true},
		"too many claims":       {"pods and claims count together", 25_001, 3, false},
		"the largest number":    {"nothing overflows", math.MaxInt32, 1, false},
		"a negative number":     {"there are no such pods", -1, 0, false},
		"very many claims each": {"one pod may have them", 1, 90_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := observe(t, c.replicas).set
			set.Spec.VolumeClaimTemplates = make([]corev1.PersistentVolumeClaim, c.claims)
			set.Default()
			if unusable, _ := invalid(set); (unusable == nil) != c.valid {
				t.Errorf("%s: %v", c.why, unusable)
			}
		})
	}
}
