package org.opensaml.saml.saml2.core;

/** OpenSAML is not published: its empty name is enough for the security plugin to load. SAML itself is dead. */
public interface StatusResponseType {}
