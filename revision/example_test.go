package revision_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/revision"
)

func ExampleResolve() {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "nginx:1.15",
	}}}}
	data, err := revision.Encode(&template)
	if err != nil {
		fmt.Println(err)
		return
	}
	old := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-6d8c5"}, Revision: 1}
	r := revision.Resolve(revision.Input{
		Owner: "web", Data: data, Have: []*appsv1.ControllerRevision{old}, Current: "web-6d8c5",
	})
	fmt.Println(r.Verdict, r.Name, "as number", r.Number, "from", r.Current.Name)
	// Output: Create web-76577c6c4c as number 2 from web-6d8c5
}

func ExampleEncode() {
	data, err := revision.Encode(&corev1.PodTemplateSpec{})
	fmt.Println(string(data), err)
	// Output: {"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":null}}}} <nil>
}

func ExampleDecode() {
	_, err := revision.Decode([]byte(`{"spec":{}}`))
	fmt.Println(err)
	// Output: read revision data: spec.template is missing
}

func ExampleSame() {
	asWritten := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "nginx:1.15",
	}}}}
	asStored := asWritten.DeepCopy()
	asStored.Spec.RestartPolicy = corev1.RestartPolicyAlways
	asStored.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	fmt.Println(revision.Same(&asWritten, asStored))
	// Output: true
}

func ExampleMatch() {
	fmt.Println(revision.Match("web-6d8c5", "6d8c5"), revision.Match("web-6d8c5", "web-77f4b"))
	// Output: true false
}

func ExampleTrim() {
	have := []*appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Revision: 1},
		{ObjectMeta: metav1.ObjectMeta{Name: "web-2"}, Revision: 2},
		{ObjectMeta: metav1.ObjectMeta{Name: "web-3"}, Revision: 3},
	}
	for _, r := range revision.Trim(have, []string{"web-3"}, 1) {
		fmt.Println("delete", r.Name)
	}
	// Output: delete web-1
}

func ExampleSort() {
	have := []*appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Name: "web-b"}, Revision: 2},
		{ObjectMeta: metav1.ObjectMeta{Name: "web-a"}, Revision: 1},
	}
	revision.Sort(have)
	fmt.Println(have[0].Name, have[1].Name)
	// Output: web-a web-b
}

func ExampleName() {
	collisions := int32(1)
	data := []byte(`{"spec":{"template":{"$patch":"replace"}}}`)
	fmt.Println(revision.Name("web", revision.Hash(data, nil)))
	fmt.Println(revision.Name("web", revision.Hash(data, &collisions)))
	fmt.Println(revision.Short("web-6d8c5"))
	// Output:
	// web-5c7586484
	// web-589f85db5c
	// 6d8c5
}

func ExampleSameData() {
	older := []byte(
		`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":null}}}}`)
	newer := []byte(`{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":null}}}}`)
	fmt.Println(revision.SameData(older, newer))
	// Output: true
}

func ExampleComparable() {
	a, b := revision.Comparable(&corev1.PodTemplateSpec{}, &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
	}})
	fmt.Println(a.Spec.RestartPolicy, b.Spec.RestartPolicy)
	// Output: Always Always
}

func ExampleFingerprint() {
	n, err := revision.Fingerprint(map[string]string{"name": "main", "image": "nginx:1.15"})
	fmt.Println(n, err)
	// Output: 3944729446 <nil>
}

func ExampleEncodeSafely() {
	fmt.Println(revision.EncodeSafely(3944729446))
	// Output: 7f88c6f88b
}

func ExampleEncodeRoles() {
	template := func(image string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
	}
	data, err := revision.EncodeRoles(map[string]*corev1.PodTemplateSpec{
		"leader": template("serve:1"), "worker": template("work:1"),
	})
	if err != nil {
		panic(err)
	}
	roles, err := revision.DecodeRoles(data)
	fmt.Println(len(roles), roles["worker"].Spec.Containers[0].Image, err)
	roles["worker"] = template("work:2")
	changed, _ := revision.EncodeRoles(roles)
	fmt.Println(revision.SameData(data, changed))
	// Output:
	// 2 work:1 <nil>
	// false
}

func ExampleDecodeRoles() {
	roles,
		err := revision.DecodeRoles([]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:1"}]}}}}`))
	fmt.Println(roles[revision.SingleRole].Spec.Containers[0].Image, err)
	// Output: web:1 <nil>
}

func ExampleSameRoles() {
	a := map[string]*corev1.PodTemplateSpec{"leader": {}, "worker": {}}
	fmt.Println(revision.SameRoles(a, map[string]*corev1.PodTemplateSpec{"leader": {}}))
	// Output: false
}

// A resource has its templates in a list. Neither the order of the list nor the defaults of the API server make another
// revision of what was stored with them.
func ExampleLayout() {
	layout := &revision.Layout{
		Templates: []revision.Place{{Path: "spec.roles[name].template"}},
		Ignored:   []string{"spec.roles[name].replicas"},
	}
	template := func(image string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
	}
	data, err := layout.Encode(map[string]*corev1.PodTemplateSpec{
		"prefill": template("serve:1"), "decode": template("serve:1"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stored := []byte(`{"spec":{"roles":[
		{"name":"prefill","replicas":2,"template":{"spec":{
			"containers":[{"name":"main","image":"serve:1"}],"restartPolicy":"Always"}}},
		{"name":"decode","replicas":4,"template":{"spec":{"containers":[{"name":"main","image":"serve:1"}]}}}]}}`)
	r := revision.Resolve(revision.Input{
		Owner: "llm", Data: data, Same: layout.Same,
		Have: []*appsv1.ControllerRevision{{ // from before the operator used this package
			ObjectMeta: metav1.ObjectMeta{Name: "llm-6d8c5"}, Revision: 1, Data: runtime.RawExtension{Raw: stored},
		}},
	})
	fmt.Println(r.Verdict, r.Name)
	templates, err := layout.Decode(stored)
	fmt.Println(templates["decode"].Spec.Containers[0].Image, err)
	// Output:
	// Use llm-6d8c5
	// serve:1 <nil>
}

// Templates are below other fields, one of each role.
func ExampleLayout_paths() {
	layout := &revision.Layout{Templates: []revision.Place{
		{Path: "spec.leaderWorkerTemplate.leaderTemplate", Role: "leader"},
		{Path: "spec.leaderWorkerTemplate.workerTemplate", Role: "worker"},
	}}
	templates, err := layout.Decode([]byte(`{"spec":{"leaderWorkerTemplate":{
		"size":4,"workerTemplate":{"spec":{"containers":[{"name":"main","image":"serve:1"}]}}}}}`))
	fmt.Println(len(templates), templates["worker"].Spec.Containers[0].Image, err)
	// Output: 1 serve:1 <nil>
}

func ExamplePromote() {
	current, promoted := revision.Promote(revision.Progress{
		Current: "web-1", Update: "web-2", Replicas: 3, Existing: 3, Updated: 3,
	})
	fmt.Println(current, promoted)
	// Output: web-2 true
}

// The revision of a new template is created before a pod refers to it.
func ExampleStore() {
	data, err := revision.Encode(&corev1.PodTemplateSpec{})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := revision.Store(revision.Wanted{
		Resolution: revision.Resolve(revision.Input{Owner: "web", Data: data}), Namespace: "shop",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range store.Next() { // package driver sends the writes, and gives the answers back
		store.Answer(time.Now(), w, w.Object, nil)
		fmt.Println(w.Verb, w.Kind(), w.Object.GetNamespace())
	}
	fmt.Println(store.Newest().Revision, store.Err())
	// Output:
	// Create revision shop
	// 1 <nil>
}

func ExampleKeepUnknownFields() {
	object := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"fieldOfTomorrow": "kept", "containers": []any{},
	}}}}
	// A resource with a template, such as yours.
	set := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, set); err != nil {
		fmt.Println(err)
		return
	}
	if err := revision.KeepUnknownFields(set, object); err != nil {
		fmt.Println(err)
		return
	}
	data, err := revision.Encode(&set.Spec.Template)
	fmt.Println(string(data), err)
	// Output: {"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":[],"fieldOfTomorrow":"kept"}}}} <nil>
}
