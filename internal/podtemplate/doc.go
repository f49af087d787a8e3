// Package podtemplate validates and defaults pod templates by the API server itself, for admission webhooks of
// workloads.
//
// Check creates a core PodTemplate as a dry run: nothing is stored, and the answer is the template with all its
// defaults, or the exact fields that are invalid. So a template is valid for the API server that will create the pods,
// whatever its version; there is no copy of its rules here.
//
// When not to use it: for a template that has not changed. It costs a call, and the stored template was validated
// before.
//
// Laws:
//   - One call per Check, none elsewhere, and no memory between two calls. A second one only where Template.TellUnknown
//     is set and there is an unknown field, or a value that cannot be decoded.
//   - The input is not changed. Unknown fields are sent unchanged, and stay.
//   - With Incomplete, what another pod webhook may add is missing, and no fault.
//   - An invalid template is a Verdict with faults. An error means that there is no verdict: see UnavailableError.
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
//		patch := podtemplate.Fill("/spec/template", template, verdict.Defaulted) // or Refill, in an update
//	}
//
// The caller needs the verb create on podtemplates. Quotas, policies and webhooks for PodTemplates
// apply as well; one that rejects the template rejects the workload.
package podtemplate
