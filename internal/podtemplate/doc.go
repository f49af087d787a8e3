// Package podtemplate lets the API server validate and default pod templates, for the admission webhooks of workloads.
//
// Check creates a core/v1 PodTemplate with dryRun=All. The API server stores nothing, and returns the template with its
// defaults, or the invalid fields. So the rules are those of the API server that will create the pods, whatever its
// version, and this package needs no copy of them.
//
// When not to use it: for a template that has not changed. Check costs a request, and the stored template was validated
// before.
//
// Laws:
//   - Check sends one request. It sends a second one only if Template.TellUnknown is set, and the template has an
//     unknown field or a value that cannot be decoded. Nothing is cached between calls.
//   - Check does not change its input. Unknown fields are kept, and sent unchanged.
//   - With Template.Incomplete, a missing volume, resource claim or required field that another pod webhook may add is
//     reported in Verdict.Missing, not in Verdict.Faults.
//   - For an invalid template, Check returns a Verdict with Faults and no error. An error is an *UnavailableError: the
//     API server gave no verdict.
//
// In use:
//
//	content := podtemplate.Prepare(template, podtemplate.Defaults{})
//	verdict, err := podtemplate.Check(ctx, client, podtemplate.Template{
//		Namespace: "shop", Content: content, Path: field.NewPath("spec", "template"),
//	})
//	switch {
//	case err != nil: // there is no verdict
//	case len(verdict.Faults) > 0: // reject, naming the fields
//	default:
//		patch := podtemplate.Fill("/spec/template", template, verdict.Defaulted) // an update needs Refill
//	}
//
// The caller needs RBAC permission to create podtemplates. Quotas, policies and webhooks for PodTemplates apply too. If
// one of them rejects the PodTemplate, Check returns an error, and the webhook rejects the workload.
package podtemplate
