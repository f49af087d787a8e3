// Package workloadspread has the Desk of WorkloadSpreads, which the webhook of new pods and that of disruptions share.
package workloadspread
