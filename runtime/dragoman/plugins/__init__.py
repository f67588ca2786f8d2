"""Drivers of one home: their registries, offers, installations and updates."""
