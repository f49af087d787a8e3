package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// site is a resource of an operator, with what the process remembers of it.
type site struct {
	metav1.ObjectMeta

	Replicas int32
	Template corev1.PodTemplateSpec
	Current  string // revision, in the status

	repeats workload.Repeats
}

func (s *site) report(pass *workload.Pass, _ error) {
	fmt.Println(pass.Counts().UpdatedAvailable, pass.Notes()) //nolint:forbidigo // the output of the example
	if current, promoted := pass.Promote(s.Current); promoted {
		s.Current = current
	}
}

func (s *site) reconcile(ctx context.Context, client kubernetes.Interface) error {
	pods, revisions, err := clientgo.Observe(ctx, client, s, "site="+s.Name)
	data, invalid := revision.Encode(&s.Template)
	if err := errors.Join(err, invalid); err != nil {
		return err
	}
	in := workload.Input{
		Owner:     workload.OwnedBy(s, siteKind(), map[string]string{"site": s.Name}),
		Scale:     scale.Input{Now: time.Now(), Limits: scale.Limits{Replicas: s.Replicas, MaxUnavailable: 1}},
		Instances: workload.Pods(pods),
		Strategy:  workload.InPlaceIfPossible,
		Repeats:   s.repeats,
	}
	history := workload.History{Data: data, Stored: revisions, Current: s.Current, Limit: 10}
	if err := in.SetHistory(history); err != nil {
		return err
	}
	pass, err := workload.Plan(in)
	if err != nil {
		return err
	}
	err = clientgo.Run(ctx, client, pass)
	s.repeats = pass.Repeats()
	s.report(pass, err)
	return err
}

func siteKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}
}

// A whole operator, which stores its revisions. The documentation of package workload shows its reconcile.
func Example() {
	ctx, client := context.Background(), newClient()
	s := &site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "site"}, Replicas: 2}
	rollout := func(image string, passes int) {
		s.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
		for range passes {
			if err := errors.Join(s.reconcile(ctx, client), settle(ctx, client.CoreV1().Pods("default"))); err != nil {
				fmt.Println(err)
			}
		}
	}
	rollout("web:1", 3)
	rollout("web:2", 5)
	fmt.Print(describe(ctx, client.CoreV1().Pods("default")))
	// Output:
	// 0 []
	// 0 [NotAvailable: 2 instances wait to become available]
	// 2 []
	// 0 [UpdateLimited: 1 instance waits to be updated (unavailable: 1, at most: 1)]
	// 0 [UpdateLimited: 1 instance waits to be updated (unavailable: 1, at most: 1) NotAvailable: 1 instance waits to become available]
	// 1 []
	// 1 [NotAvailable: 1 instance waits to become available]
	// 2 []
	// web-0 web:2 restarts: 1 ready: True
	// web-1 web:2 restarts: 1 ready: True
}

// The documentation of package workload shows the operator that the example runs.
func TestDocShowsOperator(t *testing.T) {
	source, err := os.ReadFile("operator_test.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../workload/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(source), "func (s *site) reconcile(")
	body, _, found := strings.Cut(after, "\n}\n")
	if !found {
		t.Fatal("the source of reconcile is not found")
	}
	var shown strings.Builder
	for line := range strings.Lines("func (s *site) reconcile(" + body + "\n}\n") {
		shown.WriteString("//\t" + line)
	}
	if !strings.Contains(string(doc), shown.String()) {
		t.Errorf("workload/doc.go does not show:\n%s", shown.String())
	}
}
