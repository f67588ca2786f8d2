"""What answers each route, by room."""

from .all_rooms import Rooms, make_routes

__all__ = ["Rooms", "make_routes"]
