local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
for _, c in ipairs(status.conditions or {}) do
  if c.status == "True" and (c.type == "Stalled" or c.type == "SubsetFailure") then
    return answer("Degraded", c.type .. ": " .. (c.message or c.reason or ""))
  end
end
local wanted = spec.replicas or 1
if (status.replicas or 0) > wanted or (status.readyReplicas or 0) < wanted then
  return answer("Progressing", (status.readyReplicas or 0) .. " of " .. wanted .. " pods are ready")
end
local due = wanted
for _, kept in pairs(((spec.updateStrategy or {}).manualUpdate or {}).partitions or {}) do due = due - kept end
if (status.updatedReplicas or 0) < due then
  return answer("Progressing", (status.updatedReplicas or 0) .. " of " .. due .. " pods are updated")
end
return answer("Healthy", due < wanted and "partitions keep " .. (wanted - due) .. " pods" or "")
