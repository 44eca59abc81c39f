"""Short links: the state of a page, kept by the server, and the QR code of a link."""

from functools import partial
from io import BytesIO
from ipaddress import ip_address
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from headlight.addresses import full_path
from headlight.problems import described, host_refused, over_limit
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import SVG
from headlight.schemas.links import LinkAnswer, LinkRequest, LinkStateAnswer
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left, run_in_thread

router = APIRouter(prefix="/api/v1", tags=["links"], route_class=JsonRoute)

IMMUTABLE = "private, immutable, max-age=31536000"
"""A year: the address of a link never changes. Private, as it opens a client's text."""

MAX_HOST = 300
"""Characters of a host with its port: the longest name has 253."""

LinkId = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{22}$", description="The `id` of a link.")]
_MEANINGS = {
    404: "The link is unknown or no longer kept, or the server keeps no links.",
    503: "The file of links cannot be used: it is read-only, damaged or busy, or its disk is full.",
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of errors, with what they mean for links."""
    errors = described(*statuses)
    return {
        status: error | {"description": _MEANINGS.get(int(status), error["description"])}
        for status, error in errors.items()
    }


_LOCATION = {"description": "The address of the state.", "schema": {"type": "string"}}
_SHARED: dict[int | str, dict[str, Any]] = {
    201: {"description": "The link.", "headers": {"Location": _LOCATION}},
    **_errors(400, 404, 413, 415, 422, 503),
}
_QR: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The QR code, whose title is the address.",
        "content": {SVG: {"schema": {"type": "string"}}},
    },
    **_errors(400, 404, 422, 503),
}


@router.post("/links", status_code=201, responses=_SHARED)
async def share(
    body: LinkRequest, request: Request, response: Response, services: ServicesDep
) -> LinkAnswer:
    """Keep the state of a page, and return a short link to it.

    Whoever is told the link can read the state, with a key where keys are used. `link_days` of the
    limits says how long it is kept; 0: links are off. Equal states have different links.
    """
    limit, actual = services.settings.max_link_bytes, len(body.state)
    if actual > limit:
        way_out = "share a shorter text, or the long address"
        kind = "link-too-large"
        raise over_limit("bytes", limit=limit, actual=actual, way_out=way_out, kind=kind)
    kept = await services.shared.keep_link(body.state) if services.shared else None
    if kept is None:
        keep = partial(services.links.keep, body.state)
        kept = await run_in_thread(keep, services.links.threads, client_left(request))
    link_id, expires = kept
    response.headers["Location"] = full_path(request, "link", link_id=link_id)
    is_local = is_loopback(request.url.hostname or "")
    return LinkAnswer(
        id=link_id,
        path=request.app.url_path_for("shared", link_id=link_id),
        expires=expires,
        local=is_local,
    )


@router.get("/links/{link_id}", responses=_errors(404, 422, 503))
async def link(link_id: LinkId, request: Request, services: ServicesDep) -> LinkStateAnswer:
    """Return the state of a link."""
    return LinkStateAnswer(state=await state_of(link_id, request, services))


@router.get("/links/{link_id}/qr.svg", response_class=Response, responses=_QR)
async def link_qr(link_id: LinkId, request: Request, services: ServicesDep) -> Response:
    """Return the QR code of a link, with the host of this request, to be shown in a hall."""
    address = str(request.url_for("shared", link_id=link_id))
    if len(request.url.netloc) > MAX_HOST:
        raise host_refused(request)
    await state_of(link_id, request, services)
    svg = await services.in_thread(partial(qr_code, address), client_left(request))
    return Response(svg, media_type=SVG, headers={"Cache-Control": IMMUTABLE})


async def state_of(link_id: str, request: Request, services: Services) -> str:
    """Return the state of a link; raise the problems of `Links.state`."""
    shared = await services.shared.state_of_link(link_id) if services.shared else None
    if shared is not None:
        return shared
    state = partial(services.links.state, link_id)
    return await run_in_thread(state, services.links.threads, client_left(request))


def is_loopback(host: str) -> bool:
    """Return True if a host name reaches only the machine that it is used on."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def qr_code(address: str) -> bytes:
    """Return the QR code of an address as SVG: dark on light, with the margin that readers need.

    A seventh of it may be covered or glare. `qrcode` was considered: it takes four times as long.
    """
    import segno  # 90 ms of a start

    file = BytesIO()
    code = segno.make_qr(address, error="m")
    code.save(file, kind="svg", title=address, light="#fff", xmldecl=False, omitsize=True)
    return file.getvalue()
