package deletion

import (
	"context"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/protection"
)

// Guard answers admission requests for deletions of all protected kinds.
type Guard struct {
	reader  client.Reader
	options Options
	meters  *meters
}

// New makes a Guard. The reader must read live: a cache would watch all claims and namespaces of the cluster, and lag.
func New(reader client.Reader, o Options) (*Guard, error) {
	if err := o.validate(reader); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	m, err := newMeters(o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Guard{reader: reader, options: o, meters: m}, nil
}

// SetupWithManager serves the guard on the manager's webhook server, at the paths of all kinds.
func (g *Guard) SetupWithManager(mgr ctrl.Manager) error {
	handlers := map[string]admission.HandlerFunc{}
	for _, k := range protection.Kinds() {
		if path := Path(k); !slices.Contains(g.options.ServedElsewhere, path) {
			handlers[path] = g.Handle
		}
	}
	return review.Serve(mgr, handlers)
}

// Path returns where API servers send deletions of a kind.
func Path(k protection.Kind) string {
	group := ""
	if k.Group != "" && !strings.HasSuffix(k.Group, ".k8s.io") {
		group = strings.ReplaceAll(k.Group, ".", "-") + "-"
	}
	return "/validate-" + group + strings.ToLower(k.Kind)
}

// Handle answers one request.
func (g *Guard) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Delete || req.SubResource != "" {
		return admission.Allowed("")
	}
	kind, ok := protection.KindOf(req.Kind.Group, req.Kind.Kind)
	if !ok || !slices.Contains(kind.Versions, req.Kind.Version) {
		return admission.Allowed("")
	}
	if len(req.OldObject.Raw) == 0 {
		log.FromContext(ctx).Info("Allowed a deletion without an object to review")
		return admission.Allowed("")
	}
	var stored object
	if err := review.Unmarshal(req.OldObject.Raw, &stored); err != nil {
		return review.BadRequest(err)
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.Timeout)
	defer cancel()
	read := lookup{ctx: ctx, reader: g.reader, page: g.options.Page, kind: kind, under: &stored}
	in := protection.Input{
		Policy:   g.options.Policy,
		Kind:     kind,
		Object:   &stored.ObjectMeta,
		Replicas: stored.Spec.Replicas,
		User:     req.UserInfo.Username,
		Count:    read.count,
	}
	if stored.Namespace != "" {
		in.NamespaceTerminating = read.namespaceTerminating
	}
	return g.answer(ctx, req, &stored, protection.Decide(in))
}

// object has the fields that matter of all kinds and versions, so that an object that is invalid elsewhere can be
// deleted.
type object struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
}

// answer also counts and records a refusal, but not that of a dry run.
func (g *Guard) answer(
	ctx context.Context, req admission.Request, stored *object, v protection.Verdict,
) admission.Response {
	if !v.Refused() {
		return admission.Allowed("")
	}
	if req.DryRun == nil || !*req.DryRun {
		r := newRecord(req, stored, v)
		g.meters.count(r)
		g.options.Audit(r)
	}
	log.FromContext(ctx).V(1).Info("Refused deletion", "code", v.Code)
	return review.Denied(metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: v.Message,
		Details: &metav1.StatusDetails{
			Name: stored.Name, Group: req.Kind.Group, Kind: req.Kind.Kind,
			Causes: []metav1.StatusCause{{
				Type: metav1.CauseType(v.Code), Message: v.Message, Field: "metadata.labels[" + kruise.DeletionProtectionKey + "]",
			}},
		},
	})
}
