local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if status.completionTime == nil then
  if (spec.completionPolicy or {}).type == "Never" and status.desired and (status.active or 0) == 0 then
    return answer("Healthy", (status.succeeded or 0) .. " of " .. status.desired .. " have ended, and new nodes will pull")
  end
  return answer("Progressing", (status.succeeded or 0) .. " of " .. (status.desired or 0) .. " have ended")
end
if (status.failed or 0) > 0 then return answer("Degraded", status.failed .. " nodes have failed") end
return answer("Healthy", status.message or "")
